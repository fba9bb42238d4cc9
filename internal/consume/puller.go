package consume

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/client"
	"github.com/gorocketmq/rocketmq/internal/filter"
	"github.com/gorocketmq/rocketmq/internal/inflate"
	"github.com/gorocketmq/rocketmq/internal/wire"
	"github.com/gorocketmq/rocketmq/selector"
)

// heldLonger is how late Apache's brokers answer a held pull for which nothing has
// come: they look at them every 5 s (PullRequestHoldService).
const heldLonger = 5 * time.Second

// Puller makes single requests about queues in the name of a group. It has no
// goroutines and is no member of the group.
type Puller struct {
	rt      *client.Runtime
	group   string // with the namespace
	inflate inflate.Inflater

	mu     sync.Mutex // guards source
	source map[rocketmq.Queue]int64
}

// NewPuller does no I/O.
func NewPuller(rt *client.Runtime, group string) *Puller {
	return &Puller{rt: rt, group: rt.Wrap(group), source: make(map[rocketmq.Queue]int64)}
}

// Fetch is what one pull asks for.
type Fetch struct {
	Queue  rocketmq.Queue
	Offset int64
	Max    int
	Wait   time.Duration // how long the broker may wait for messages
	Expr   selector.Expr
}

// Fetched is what one pull brought.
type Fetched struct {
	Messages       []*rocketmq.MessageView
	Next, Min, Max int64
	Code           int32 // of the answer
}

// Pull makes one pull. An offset outside of the queue's range is a
// [*rocketmq.OffsetError], a message that cannot be decompressed a [*BodyError];
// with both the rest of the result is valid.
func (p *Puller) Pull(ctx context.Context, f Fetch) (Fetched, error) {
	route, err := p.rt.Route(ctx, p.rt.Wrap(f.Queue.Topic))
	if err != nil {
		return Fetched{}, err
	}
	p.mu.Lock()
	from := p.source[f.Queue]
	p.mu.Unlock()
	addr := route.Brokers[f.Queue.Broker].Any(from)
	if addr == "" {
		return Fetched{}, noBroker(f.Queue)
	}
	keep, err := keeper(f.Expr)
	if err != nil {
		return Fetched{}, err
	}
	limit := p.rt.RequestTimeout()
	if f.Wait > 0 {
		limit += f.Wait + heldLonger
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	h := wire.PullRequest{
		Group: []byte(p.group), Topic: []byte(route.Topic), QueueID: int32(f.Queue.ID), Offset: f.Offset, MaxMsgs: int32(f.Max),
		SysFlag: wire.PullSubscription, Subscription: []byte(f.Expr.String()), ExpressionType: []byte(f.Expr.Type()),
	}
	if f.Wait > 0 {
		h.SysFlag |= wire.PullSuspend
		h.SuspendMillis = max(f.Wait.Milliseconds(), 1)
	}
	frame, err := p.rt.Exchange(ctx, addr, &wire.Command{Code: wire.ReqPullMessage, Ext: &h})
	if err != nil {
		p.from(f.Queue, client.MasterID) // the next one asks the master, if this was none
		return Fetched{}, err
	}
	return p.fetched(f, addr, frame, keep)
}

// fetched judges the answer.
func (p *Puller) fetched(f Fetch, addr string, frame *wire.Frame, keep func(string) bool) (Fetched, error) {
	switch frame.Code {
	case wire.RespSuccess, wire.RespPullNotFound, wire.RespPullRetryImmediately, wire.RespPullOffsetMoved:
	default:
		return Fetched{}, &rocketmq.BrokerError{Op: "PULL_MESSAGE", Addr: addr, Code: rocketmq.Code(frame.Code), Remark: string(frame.Remark)}
	}
	var h wire.PullResponse
	if err := h.DecodeExt(frame); err != nil {
		return Fetched{}, fmt.Errorf("answer to a pull: %w", err)
	}
	p.from(f.Queue, h.SuggestBrokerID)
	out := Fetched{Next: h.NextOffset, Min: h.MinOffset, Max: h.MaxOffset, Code: frame.Code}
	switch frame.Code {
	case wire.RespPullOffsetMoved:
		return out, &rocketmq.OffsetError{Queue: f.Queue, Asked: f.Offset, Min: h.MinOffset, Max: h.MaxOffset}
	case wire.RespSuccess:
	default:
		return out, nil
	}
	pg, resume, err := decodePage(&queue{key: f.Queue}, frame.Body, h.OffsetDelta, p.rt.Unwrap, keep)
	if err != nil {
		out.Next = max(resume, f.Offset) // what follows the last message that could be read
		err = fmt.Errorf("messages of queue %s from offset %d on cannot be read: %w", f.Queue, out.Next, err)
	}
	for i, v := range pg.ptrs {
		body, berr := p.inflate.Inflate(v.Body, pg.meta[i].sysFlag)
		if berr != nil {
			out.Messages, out.Next = pg.ptrs[:i], v.Offset
			return out, &BodyError{v, berr}
		}
		v.Body = body
	}
	out.Messages = pg.ptrs
	return out, err
}

// from notes which broker of the queue's name is to be asked next.
func (p *Puller) from(q rocketmq.Queue, id int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if id == client.MasterID {
		delete(p.source, q)
	} else {
		p.source[q] = id
	}
}

// keeper is the exact test of a message's tag.
func keeper(e selector.Expr) (func(tag string) bool, error) {
	byTag := filter.All
	if e.Type() == filter.TypeTag {
		byTag = e.String()
	}
	tags, err := filter.Parse(byTag)
	if err != nil {
		return nil, err
	}
	return (&topic{tags: tags}).keep, nil
}

func noBroker(q rocketmq.Queue) error {
	return fmt.Errorf("%w: the route of the topic has no broker of queue %s", rocketmq.ErrNoQueue, q)
}

// master is where the offsets of a queue are kept.
func (p *Puller) master(ctx context.Context, q rocketmq.Queue) (addr, topic string, err error) {
	route, err := p.rt.Route(ctx, p.rt.Wrap(q.Topic))
	if err != nil {
		return "", "", err
	}
	if addr = route.Brokers[q.Broker].Any(client.MasterID); addr == "" {
		return "", "", noBroker(q)
	}
	return addr, route.Topic, nil
}

// Position is the offset of a position: the end of the queue for both kinds of
// latest.
func (p *Puller) Position(ctx context.Context, q rocketmq.Queue, at rocketmq.Position) (int64, error) {
	addr, topic, err := p.master(ctx, q)
	if err != nil {
		return 0, err
	}
	return askPosition(ctx, p.rt, addr, topic, q, at)
}

// Committed is the group's offset of a queue. A broker before 5.0 says 0 also if
// there is none and the queue begins there.
func (p *Puller) Committed(ctx context.Context, q rocketmq.Queue) (off int64, found bool, err error) {
	addr, topic, err := p.master(ctx, q)
	if err != nil {
		return 0, false, err
	}
	req := wire.QueryOffsetRequest{Group: p.group, Topic: topic, QueueID: int32(q.ID), HasSetZero: true}
	h, _, err := askOffset(ctx, p.rt, addr, &wire.Command{Code: wire.ReqQueryConsumerOffset, Ext: &req})
	switch {
	case notFound(err), err == nil && h < 0:
		return 0, false, nil
	case err != nil:
		return 0, false, err
	}
	return h, true, nil
}

// Commit sets the group's offset of a queue, and waits for the broker.
func (p *Puller) Commit(ctx context.Context, q rocketmq.Queue, off int64) error {
	addr, topic, err := p.master(ctx, q)
	if err != nil {
		return err
	}
	_, err = p.rt.Call(ctx, addr, &wire.Command{
		Code: wire.ReqUpdateConsumerOffset, Ext: &wire.UpdateOffsetRequest{Group: p.group, Topic: topic, QueueID: int32(q.ID), Offset: off},
	})
	return err
}

// askPosition asks a broker for the offset of a position.
func askPosition(ctx context.Context, rt *client.Runtime, addr, topic string, q rocketmq.Queue, at rocketmq.Position) (int64, error) {
	queue := wire.QueueRequest{Topic: topic, QueueID: int32(q.ID)}
	cmd := &wire.Command{Code: wire.ReqGetMaxOffset, Ext: &queue}
	switch at.Kind() {
	case rocketmq.PositionEarliest:
		cmd.Code = wire.ReqGetMinOffset
	case rocketmq.PositionOffset:
		return at.Offset(), nil
	case rocketmq.PositionTime:
		cmd.Code = wire.ReqSearchOffsetByTimestamp
		cmd.Ext = &wire.SearchOffsetRequest{Topic: topic, QueueID: int32(q.ID), Timestamp: at.Time().UnixMilli()}
	}
	off, _, err := askOffset(ctx, rt, addr, cmd)
	return max(off, 0), err
}

// askOffset makes a request that is answered with an offset. version is the
// broker's.
func askOffset(ctx context.Context, rt *client.Runtime, addr string, cmd *wire.Command) (off int64, version int32, err error) {
	if addr == "" {
		return 0, 0, errNoAddress
	}
	f, err := rt.Call(ctx, addr, cmd)
	if err != nil {
		return 0, 0, err
	}
	var h wire.OffsetResponse
	err = h.DecodeExt(f)
	return h.Offset, f.Version, err
}

var errNotAssigned = errors.New("the queue is not assigned to this consumer")
