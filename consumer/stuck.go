package consumer

import (
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/bridge"
)

// Stuck is a queue that does not go on, and why. See [rocketmq.StuckReason].
type Stuck = rocketmq.StuckInfo

// WithStuckAfter sets after which time a queue is stuck, 45 s by default, and has f,
// which may be nil, told of it: it has messages, none has been done for d, and others wait
// (a slow handler with nothing behind it is not stuck, and neither is a queue that is
// paused). A queue whose lock cannot be had, or whose broker cannot be reached, is reported
// as well, as nobody knows what is in it. It is noticed an eighth of d late at most, told
// once until the queue goes on, and logged; [Push.Health] says it as long as it lasts, and
// [rocketmq.HookStuck] is the same for all consumers of a client.
//
// f is called on a goroutine of the consumer, one call at a time. No queue is looked at until it has
// returned. A panic is logged.
func WithStuckAfter(d time.Duration, f func(s Stuck)) Option {
	return func(c *config) {
		c.only(handling, "WithStuckAfter", "nobody but the application is slow; Health says what pulling does", "it does nothing in the background")
		c.stuckAfter, c.onStuck = d, f
	}
}

// stuck is the function for the layer below, which does not know the public
// errors.
func (c *config) stuck() func(s rocketmq.StuckInfo) {
	if c.onStuck == nil {
		return nil
	}
	return func(s rocketmq.StuckInfo) {
		s.Err = bridge.PublicError(s.Err)
		c.onStuck(s)
	}
}

// publicStuck does the same for a hook.
type publicStuck struct{ rocketmq.HookStuck }

// OnStuck implements [rocketmq.HookStuck].
func (h publicStuck) OnStuck(s rocketmq.StuckInfo) {
	s.Err = bridge.PublicError(s.Err)
	h.HookStuck.OnStuck(s)
}
