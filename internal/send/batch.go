package send

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
	"github.com/gorocketmq/rocketmq/selector"
)

// maxBatch is what brokers allow for all records of a batch (maxMessageSize).
const maxBatch = rocketmq.MaxBody

// recordRoom is what a stored record has beside topic, body and the sender's
// properties: its fixed fields, and the properties that the library and the
// broker add.
const recordRoom = 384

// batchedSize is how much of a batch a message takes, as the broker will count.
func batchedSize(m *rocketmq.Message) int {
	n := recordRoom + len(m.Topic) + len(m.Body) + len(m.Tag) + len(m.ShardingKey)
	for _, k := range m.Keys {
		n += len(k) + 1
	}
	for k, v := range m.Properties {
		n += len(k) + len(v) + 2
	}
	return n
}

// SendBatch sends messages of one topic with as few requests as they fit into.
// put gets the result of each that was stored. The errors are one for each
// message, nil if none has failed. Faults of the messages are found before
// anything is sent: they are the second error.
func (p *Pipeline) SendBatch(ctx context.Context, ms []*rocketmq.Message, o Options, put func(i int, r Result)) ([]error, error) {
	if !p.gate.enter() {
		return nil, rocketmq.ErrClosed
	}
	defer p.gate.leave()
	if err := checkBatch(ms); err != nil {
		return nil, err
	}
	b := batching{p: p, opts: o, total: len(ms), put: put}
	groups, err := p.divide(ctx, ms, o)
	switch {
	case err != nil:
		return nil, err
	case groups == nil:
		b.send(ctx, ms, nil)
	}
	for _, at := range groups {
		part := make([]*rocketmq.Message, len(at))
		for k, i := range at {
			part[k] = ms[i]
		}
		b.send(ctx, part, at)
	}
	return b.errs, nil
}

// checkBatch refuses what brokers would.
func checkBatch(ms []*rocketmq.Message) error {
	bad := func(i int, err error) error {
		return fmt.Errorf("message %d of the batch: %w", i, err)
	}
	if len(ms) == 0 {
		return fmt.Errorf("%w: the batch is empty", rocketmq.ErrInvalidMessage)
	}
	for i, m := range ms {
		if err := m.Validate(); err != nil {
			return bad(i, err)
		}
		var why error
		switch {
		case m.Topic != ms[0].Topic:
			why = fmt.Errorf("its topic is %q, that of the first is %q; a batch has one topic", m.Topic, ms[0].Topic)
		case !m.Delay.IsZero():
			why = errors.New("it is delayed; brokers take no delayed messages in a batch")
		case !batchable(m):
			why = fmt.Errorf("brokers take no messages for the topic %q in a batch", m.Topic)
		case batchedSize(m) > maxBatch:
			why = fmt.Errorf("%w: with its properties it is larger than the %d bytes of a batch", rocketmq.ErrTooLarge, maxBatch)
		}
		if why != nil {
			return bad(i, fmt.Errorf("%w: %w", rocketmq.ErrInvalidMessage, why))
		}
	}
	return nil
}

// divide splits a batch by where sharding keys want its messages, and returns
// the indexes of each part. Without keys, or if the caller has chosen the
// queue, it returns nil: nothing is to be split.
func (p *Pipeline) divide(ctx context.Context, ms []*rocketmq.Message, o Options) ([][]int, error) {
	keyed := slices.ContainsFunc(ms, func(m *rocketmq.Message) bool { return m.ShardingKey != "" })
	if !keyed || o.Fixed || o.Selector != nil || p.cfg.Selector != nil {
		return nil, nil
	}
	s := sending{p: p, m: ms[0]}
	s.begin(ctx, time.Now())
	if err := s.route(ctx); err != nil {
		return nil, s.fail(err)
	}
	const none = -1 // without a key
	at := map[int]int{}
	var groups [][]int
	for i, m := range ms {
		way := none
		if m.ShardingKey != "" {
			way = selector.HashIndex(m.ShardingKey, len(s.tb.queues))
		}
		g, ok := at[way]
		if !ok {
			g = len(groups)
			at[way], groups = g, append(groups, nil)
		}
		groups[g] = append(groups[g], i)
	}
	return groups, nil
}

// batching is a call of SendBatch.
type batching struct {
	p     *Pipeline
	opts  Options
	total int
	put   func(i int, r Result)
	errs  []error // nil until one fails
}

// send sends messages with as few requests as they fit into. at has their
// indexes in the whole; nil: they are the whole.
func (b *batching) send(ctx context.Context, ms []*rocketmq.Message, at []int) {
	for first := 0; first < len(ms); {
		n := fitting(ms[first:])
		b.request(ctx, ms[first:first+n], func(k int) int {
			if at == nil {
				return first + k
			}
			return at[first+k]
		})
		first += n
	}
}

// fitting is how many of the messages fit into one request.
func fitting(ms []*rocketmq.Message) int {
	size := 0
	for n, m := range ms {
		if size += batchedSize(m); size > maxBatch {
			return n
		}
	}
	return len(ms)
}

// request sends one request. index tells a message's place in the whole.
func (b *batching) request(ctx context.Context, ms []*rocketmq.Message, index func(k int) int) {
	p := b.p
	s := sending{p: p, m: ms[0], opts: b.opts, batch: ms}
	s.begin(ctx, time.Now())
	a := p.attempts.Get().(*attempt)
	stored, err := s.run(ctx, a)
	if err != nil && b.errs == nil {
		b.errs = make([]error, b.total)
	}
	if stored {
		a.results(s.last, len(ms), func(k int, r Result) {
			b.put(index(k), r)
			s.ended(ctx, ms[k], a, k, r, err)
		})
	}
	for k, m := range ms {
		if err != nil {
			b.errs[index(k)] = err
		}
		if !stored {
			s.ended(ctx, m, a, k, Result{}, err)
		}
	}
	a.release()
	p.attempts.Put(a)
}

// SendOneway hands one message to the connection of a broker; no answer tells
// what becomes of it.
func (p *Pipeline) SendOneway(ctx context.Context, m *rocketmq.Message, o Options) error {
	if !p.gate.enter() {
		return rocketmq.ErrClosed
	}
	defer p.gate.leave()
	if err := m.Validate(); err != nil {
		return err
	}
	s := sending{p: p, m: m, opts: o}
	s.begin(ctx, time.Now())
	a := p.attempts.Get().(*attempt)
	err := s.oneway(ctx, a)
	s.ended(ctx, m, a, 0, Result{Queue: s.last}, err)
	a.release()
	p.attempts.Put(a)
	return err
}

// oneway tries other brokers as long as nothing could be handed over.
func (s *sending) oneway(ctx context.Context, a *attempt) error {
	if ctx.Err() != nil {
		return s.fail(context.Cause(ctx))
	}
	if err := s.route(ctx); err != nil {
		return s.fail(err)
	}
	s.p.announce()
	s.prepare(a)
	a.flag = wire.FlagOneway
	for {
		if err := s.choose(); err != nil {
			return s.fail(err)
		}
		err := s.handOver(ctx, a)
		if err == nil {
			return nil
		}
		if _, again, err := s.judge(ctx, a, err); !again {
			return err
		}
	}
}

// handOver gives the request to a connection.
func (s *sending) handOver(ctx context.Context, a *attempt) error {
	c, by, err := s.connect(ctx, a)
	if err != nil {
		return err
	}
	return c.Oneway(a, by, remoting.Later)
}
