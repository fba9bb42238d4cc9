package send

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/run"
)

// A call that fails while its frame is being made is nobody else's before the
// sender is done with it.
func TestAsyncIsPassedOnByTheSecond(t *testing.T) {
	for name, first := range map[string]bool{"the sender is first": true, "the answer is first": false} {
		t.Run(name, func(t *testing.T) {
			p := newAttemptFor(t).p
			g := run.NewGroup(t.Context())
			g.Stop() // what is added stays in the queue
			p.helpers = newRelay(g, 0, 0, func(*async) {})
			x := &async{sending: sending{p: p}, a: newAttempt(p)}
			if first {
				x.meet()
			} else {
				x.Done(nil, remoting.ErrTimeout)
			}
			require.Empty(t, p.helpers.queue)
			if first {
				x.Done(nil, remoting.ErrTimeout)
			} else {
				x.meet()
			}
			require.Equal(t, []*async{x}, p.helpers.queue)
			require.ErrorIs(t, x.a.err, remoting.ErrTimeout)
		})
	}
}
