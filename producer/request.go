package producer

import (
	"context"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/send"
)

// Request sends one message and waits for the reply to it: a consumer somewhere
// makes it with rocketmq.NewReply and sends it. The view's ID, Body and
// properties are the reply's; it comes from no queue of a topic of yours.
//
// The reply may take what ctx leaves until its deadline, or the total timeout
// ([WithTimeout]) if ctx has none; the consumer finds that as property TTL.
// Sending has the attempts and deadlines of [Producer.Send], within that time,
// and goes through the interceptors, which see the result of sending and not the
// reply. Before the first request Request tells the brokers of the topic's cluster
// who waits here; that takes up to one attempt's time.
//
// Each call has one outcome. When no reply has come in time the error is
// rocketmq.ErrTimeout and says where the request was stored; a reply that comes
// later is dropped. An error of sending is that of Send and says whether the
// request may have been stored. A request that was stored but not flushed or
// replicated in time waits for its reply like any other. [Producer.Close] ends
// requests that wait with rocketmq.ErrClosed.
//
// No goroutine waits along with the caller; any number of calls may be under
// way, of any number of producers of one client.
func (p *Producer) Request(ctx context.Context, m *rocketmq.Message, opts ...SendOption) (*rocketmq.MessageView, error) {
	q, err := p.pipe.NewRequest(ctx)
	if err != nil {
		return nil, err
	}
	sent := false
	defer func() {
		if !sent {
			q.Abandon() // an interceptor or a selector has panicked
		}
	}()
	o := options(opts)
	next := SendFunc(func(ctx context.Context, m *rocketmq.Message) (Result, error) {
		r, err := q.Send(ctx, m, o)
		return result(r), err
	})
	if p.intercept != nil {
		next = p.intercept(next)
	}
	res, err := next(ctx, m)
	sent = true
	topic := ""
	if m != nil {
		topic = m.Topic
	}
	return q.Wait(ctx, topic, send.Result{MessageID: res.MessageID, Queue: res.Queue}, err)
}
