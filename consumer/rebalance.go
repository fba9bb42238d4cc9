package consumer

import (
	"context"
	"fmt"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/bridge"
	"github.com/gorocketmq/rocketmq/internal/consume"
)

// RebalanceKind is what happened to queues.
type RebalanceKind uint8

// The kinds. Each queue that is assigned is later revoked or lost, once.
const (
	// Assigned: the queues are this member's, and none of their messages has been
	// handled yet. They are pulled when the listener has returned.
	Assigned RebalanceKind = iota
	// Revoked: the queues go, or the consumer closes, and no handler is at them any more. When the
	// listener has returned the offset is committed and, in order, the lock let go, so
	// that another member begins. (Without order what was done when the queue was
	// taken away has been committed then already, and the next owner may have begun.)
	// To a [LitePull] it means that none of their messages is handed out any more, and
	// that what was can still be committed.
	Revoked
	// Lost: the queues are not this member's any more, or it closes, and a handler may still be at
	// them: in order the lock was lost, else the handler did not return in time.
	Lost
)

// String is the kind's name, in lower case.
func (k RebalanceKind) String() string {
	switch k {
	case Assigned:
		return "assigned"
	case Revoked:
		return "revoked"
	case Lost:
		return "lost"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Rebalance is what a listener is told.
type Rebalance struct {
	Kind   RebalanceKind
	Topic  string           // the group's retry topic is one, too
	Queues []rocketmq.Queue // of that topic, sorted
}

// OnRebalance has f called when queues come and go, see [RebalanceKind] for the
// moments. It is for what belongs to a queue: state that is loaded before
// its first message, and kept when the last one is done. To count and log, hooks
// ([rocketmq.HookRebalance]) are simpler.
//
// Calls are made one after the other, in the order of events. What follows an event waits
// for f: it should take no longer than a second or two, as meanwhile other
// queues come and go later, and in order a lock that is held for 40 s without being
// renewed is lost. ctx ends when the consumer closes and its drain limit has
// passed. An offset that is reset is no event. A panic is logged.
func OnRebalance(f func(ctx context.Context, r Rebalance)) Option {
	return func(c *config) {
		c.only(handling|roleLite, "OnRebalance", "its queues do not change hands")
		c.listen, c.hasListen = f, true
	}
}

// listener is the same for the layer below.
func (c *config) listener() func(ctx context.Context, e consume.Event) {
	if c.listen == nil {
		return nil
	}
	return func(ctx context.Context, e consume.Event) {
		c.listen(ctx, Rebalance{Kind: RebalanceKind(e.Kind), Topic: e.Topic, Queues: e.Queues})
	}
}

// publicRebalance gives a hook the public errors.
type publicRebalance struct{ rocketmq.HookRebalance }

// OnRebalance implements [rocketmq.HookRebalance].
func (h publicRebalance) OnRebalance(r rocketmq.RebalanceInfo) {
	r.Err = bridge.PublicError(r.Err)
	h.HookRebalance.OnRebalance(r)
}

// hooksOf sorts a client's hooks.
func hooksOf(all []any) (h consume.Hooks) {
	for _, x := range all {
		if x, ok := x.(rocketmq.HookConsume); ok {
			h.Consume = append(h.Consume, x)
		}
		if x, ok := x.(rocketmq.HookRebalance); ok {
			h.Rebalance = append(h.Rebalance, publicRebalance{x})
		}
		if x, ok := x.(rocketmq.HookStuck); ok {
			h.Stuck = append(h.Stuck, publicStuck{x})
		}
	}
	return h
}
