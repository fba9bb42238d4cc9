package consume

import (
	"slices"
	"time"

	"github.com/gorocketmq/rocketmq"
)

// Hooks are those of the client that a consumer calls.
type Hooks struct {
	Consume   []rocketmq.HookConsume
	Rebalance []rocketmq.HookRebalance
	Stuck     []rocketmq.HookStuck
}

// report tells hooks what became of the messages of one call. It is a value on
// the worker's stack: without hooks it costs nothing.
type report struct {
	c     *Consumer
	q     *queue
	views []*rocketmq.MessageView // of the call
	took  time.Duration
	lag   int64 // from the first offset of the queue
}

// newReport makes the report of a call that began at a time. It is empty if nobody
// wants it.
func (c *Consumer) newReport(q *queue, views []*rocketmq.MessageView, began time.Time) report {
	if len(c.cfg.Hooks.Consume) == 0 {
		return report{}
	}
	q.mu.Lock()
	end := q.max
	q.mu.Unlock()
	return report{c: c, q: q, views: views, took: time.Since(began), lag: end}
}

// tell reports message i.
func (r *report) tell(i int, out rocketmq.ConsumeOutcome, err error, delay time.Duration) {
	if r.c == nil {
		return
	}
	v := r.views[i]
	info := rocketmq.ConsumeInfo{
		Group: r.c.cfg.Group, Message: v, Outcome: out, Err: err, Delay: delay, Took: r.took, Batch: len(r.views), Lag: max(r.lag-v.Offset-1, 0),
	}
	for _, h := range r.c.cfg.Hooks.Consume {
		h.OnConsume(r.q.ctx, info)
	}
}

// failed reports message i that failed, or was not tried.
func (r *report) failed(i int, o Outcome, dead bool) {
	switch {
	case r.c == nil:
	case o.Kind == Done:
		r.tell(i, rocketmq.ConsumeDone, nil, 0)
	case r.q.cut():
		r.tell(i, rocketmq.ConsumeRevoked, o.Err, 0)
	case o.Kind == Untried:
		r.tell(i, rocketmq.ConsumeUntried, nil, 0)
	case r.c.local != nil:
		r.tell(i, rocketmq.ConsumeDropped, o.Err, 0)
	case dead:
		r.tell(i, rocketmq.ConsumeDeadLetter, o.Err, 0)
	default:
		r.tell(i, rocketmq.ConsumeRetry, o.Err, o.Delay)
	}
}

// cut tells whether a failure is none, because we ended the handler's context, or
// another member has the queue by now.
func (q *queue) cut() bool { return q.revoked.Load() || q.ctx.Err() != nil }

// rebalanced tells hooks of a division.
func (c *Consumer) rebalanced(t *topic, assigned, gained, lost []rocketmq.Queue, err error) {
	if len(c.cfg.Hooks.Rebalance) == 0 {
		return
	}
	info := rocketmq.RebalanceInfo{Group: c.cfg.Group, Topic: t.name, Assigned: sorted(assigned), Gained: sorted(gained), Lost: sorted(lost), Err: err}
	for _, h := range c.cfg.Hooks.Rebalance {
		h.OnRebalance(info)
	}
}

func sorted(qs []rocketmq.Queue) []rocketmq.Queue {
	return slices.SortedFunc(slices.Values(qs), rocketmq.Queue.Compare)
}
