package txn

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/inflate"
	"github.com/gorocketmq/rocketmq/internal/run"
	"github.com/gorocketmq/rocketmq/internal/send"
	"github.com/gorocketmq/rocketmq/internal/view"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Bounds of the checks that wait.
const (
	maxWaiting      = 2000
	maxWaitingBytes = 64 << 20
)

// checks answers the brokers' questions. Goroutines come with the work and go
// with it, as many as there may be checks at a time.
type checks struct {
	p     *Producer
	check Checker
	tasks *run.Group
	inf   inflate.Inflater

	mu      sync.Mutex // guards all below; nothing that blocks is called under it
	closed  bool
	workers int
	waiting []*check
	bytes   int               // of those that wait
	byID    map[string]*check // those that wait or run
	dropped int
}

// check is one question about a half message, or several in a row.
type check struct {
	id   string
	body []byte
	to   send.Ending // where the newest question came from
}

func newChecks(p *Producer, f Checker) *checks {
	return &checks{p: p, check: f, tasks: run.NewGroup(context.Background()), byID: map[string]*check{}}
}

// arrived takes a question. It runs on a connection's reader.
func (c *checks) arrived(addr string, f *wire.Frame) {
	var h wire.CheckTransactionRequest
	var r wire.Record
	if err := h.DecodeExt(f); err != nil {
		c.p.log.Warn("check of a transaction cannot be read", "addr", addr, "err", err)
		return
	}
	if _, err := wire.DecodeRecord(f.Body, &r); err != nil {
		c.p.log.Warn("half message of a check cannot be read", "addr", addr, "err", err)
		return
	}
	id := r.Properties.Text(wire.PropUniqKey)
	if id == "" {
		id = h.OffsetMsgID
	}
	x := &check{id: id, body: f.Body, to: send.Ending{
		Topic: string(r.Topic), Broker: h.BrokerName, Addr: addr, Half: h.TranStateOffset, LogOffset: h.CommitLogOffset, FromCheck: true, ID: id,
	}}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	if old := c.byID[id]; old != nil {
		old.to = x.to // asked again while it waits or runs: one answer, to the newest copy
		return
	}
	if len(c.waiting) >= maxWaiting || c.bytes+len(x.body) > maxWaitingBytes && len(c.waiting) > 0 {
		if c.dropped++; c.dropped == 1 {
			c.p.log.Warn("too many checks wait, dropping some; brokers ask again", "waiting", len(c.waiting), "running", c.workers)
		}
		return
	}
	c.waiting = append(c.waiting, x)
	c.bytes += len(x.body)
	c.byID[id] = x
	if c.workers < c.p.cfg.concurrency && c.tasks.Go(c.work) {
		c.workers++
	}
}

// next takes the check that waits longest. Without one the worker has ended.
func (c *checks) next() *check {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) == 0 {
		c.workers--
		if c.dropped > 0 {
			c.p.log.Info("no check waits any more", "dropped", c.dropped)
			c.dropped = 0
		}
		return nil
	}
	x := c.waiting[0]
	c.waiting[0] = nil
	c.waiting = c.waiting[1:]
	c.bytes -= len(x.body)
	return x
}

// work is a worker.
func (c *checks) work(ctx context.Context) {
	for x := c.next(); x != nil; x = c.next() {
		c.answer(ctx, x, c.outcome(ctx, x))
	}
}

// outcome asks the application.
func (c *checks) outcome(ctx context.Context, x *check) State {
	v, err := c.view(x)
	if err == nil {
		var s State
		if s, err = c.call(ctx, v); err == nil {
			return s
		}
		if s == Rollback {
			c.p.log.Warn("check of a transaction says rollback, with an error", "id", x.id, "err", err)
			return s
		}
	}
	c.p.log.Error("check of a transaction failed, the broker asks again", "id", x.id, "topic", x.to.Topic, "err", err)
	return Unknown
}

// call calls the checker. A panic is an error.
func (c *checks) call(ctx context.Context, v *rocketmq.MessageView) (s State, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.p.cfg.timeout)
	defer cancel()
	defer func() {
		if x := recover(); x != nil {
			stack := debug.Stack()
			c.p.log.Error("panic in the check of a transaction", "id", v.ID, "panic", fmt.Sprint(x), "stack", string(stack))
			s, err = Unknown, &rocketmq.PanicError{Value: x, Stack: stack}
		}
	}()
	return outcome(c.check(ctx, v))
}

// view is the half message for the application.
func (c *checks) view(x *check) (*rocketmq.MessageView, error) {
	var r wire.Record
	if _, err := wire.DecodeRecord(x.body, &r); err != nil {
		return nil, err
	}
	body, err := c.inf.Inflate(r.Body, r.SysFlag)
	if err != nil {
		return nil, err
	}
	r.Body = body
	topic := c.p.rt.Unwrap(string(r.Topic))
	v := &rocketmq.MessageView{Topic: topic, Queue: rocketmq.Queue{Topic: topic, Broker: x.to.Broker, ID: int(r.QueueID)}, Offset: r.QueueOffset}
	var ids []byte
	var keys []string
	view.Message(v, &r, &ids, &keys)
	v.TransactionID = v.ID
	return v, nil
}

// answer tells the broker.
func (c *checks) answer(ctx context.Context, x *check, s State) {
	c.mu.Lock()
	to := x.to
	delete(c.byID, x.id) // a question that comes now wants an answer of its own
	c.mu.Unlock()
	to.Decision = s.flag()
	if err := c.p.pipe.End(context.WithoutCancel(ctx), &to); err != nil {
		c.p.log.Warn("broker has not taken the outcome of a transaction, it will ask again", "id", x.id, "state", s, "err", err)
	}
}

// close drops what waits and waits for what runs, as long as ctx allows.
func (c *checks) close(ctx context.Context) error {
	c.mu.Lock()
	c.closed = true
	c.waiting, c.bytes = nil, 0
	c.mu.Unlock()
	err := c.tasks.WaitContext(ctx)
	c.tasks.Cancel(rocketmq.ErrClosed)
	if err != nil {
		return fmt.Errorf("txn: checks are still under way: %w", err)
	}
	return nil
}
