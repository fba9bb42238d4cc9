package send

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/client"
	"github.com/gorocketmq/rocketmq/internal/view"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Request is one message that wants a reply. No goroutine belongs to it: the
// caller sends, then waits. It ends with [Request.Wait] or [Request.Abandon].
type Request struct {
	p        *Pipeline
	id       string // correlation id
	expected *client.ExpectedReply
	began    time.Time
	deadline time.Time
}

// NewRequest makes ready for a reply. It has the time that ctx leaves, or that
// sends have in all if ctx has no deadline.
func (p *Pipeline) NewRequest(ctx context.Context) (*Request, error) {
	if p.open.Err() != nil {
		return nil, rocketmq.ErrClosed
	}
	now := time.Now()
	q := &Request{p: p, id: correlationID(), began: now, deadline: now.Add(p.cfg.Total)}
	if d, ok := ctx.Deadline(); ok {
		q.deadline = d
	}
	q.expected = p.rt.ExpectReply(q.id)
	return q, nil
}

// correlationID is a random UUID as text.
func correlationID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	t := hex.AppendEncode(make([]byte, 0, 36), b[:4])
	for i := 4; i < 10; i += 2 {
		t = hex.AppendEncode(append(t, '-'), b[i:i+2])
	}
	return string(hex.AppendEncode(append(t, '-'), b[10:]))
}

// Send sends m as the request. It may be called again, by an interceptor: the
// first reply counts.
func (q *Request) Send(ctx context.Context, m *rocketmq.Message, o Options) (Result, error) {
	p := q.p
	if err := m.Validate(); err != nil {
		return Result{}, err
	}
	if m.ReplyTo != nil {
		return Result{}, fmt.Errorf("%w: topic %q: a reply cannot be a request", rocketmq.ErrInvalidMessage, m.Topic)
	}
	if err := p.introduce(ctx, m, q.deadline, p.rt.Introduce); err != nil {
		return Result{}, err
	}
	var room [160]byte
	var number [20]byte
	ttl := max(time.Until(q.deadline).Milliseconds(), 1)
	props := wire.AppendProperty(room[:0], wire.PropCorrelationID, q.id)
	props = wire.AppendProperty(props, wire.PropReplyToClient, p.rt.ClientID())
	o.Extra = wire.AppendProperty(props, wire.PropTTL, strconv.AppendInt(number[:0], ttl, 10))
	o.By = q.deadline
	return p.Send(ctx, m, o)
}

// Wait returns the reply, or why there is none. res and err are how sending
// ended, after interceptors.
func (q *Request) Wait(ctx context.Context, topic string, res Result, err error) (*rocketmq.MessageView, error) {
	if err != nil && !errors.Is(err, rocketmq.ErrNotDurable) {
		return q.end(func() error { return q.notSent(topic, err) })
	}
	late := time.NewTimer(time.Until(q.deadline))
	defer late.Stop()
	why := rocketmq.ErrTimeout
	select {
	case r := <-q.expected.C():
		return q.p.reply(r)
	case <-late.C:
	case <-ctx.Done():
		if c := context.Cause(ctx); !errors.Is(c, context.DeadlineExceeded) {
			why = c
		}
	case <-q.p.open.Done():
		why = rocketmq.ErrClosed
	}
	return q.end(func() error {
		stored := "it was stored as message " + res.MessageID + " in queue " + res.Queue.String()
		if res.MessageID == "" {
			stored = "an interceptor says that it was sent"
		}
		return fmt.Errorf("producer: no reply to the request to topic %q within %s; %s: %w",
			topic, time.Since(q.began).Round(time.Millisecond), stored, why)
	})
}

// end gives up, unless the reply is there already.
func (q *Request) end(why func() error) (*rocketmq.MessageView, error) {
	if q.expected.Cancel() {
		return nil, why()
	}
	return q.p.reply(<-q.expected.C())
}

// notSent says whether a request whose sending has failed may have been stored.
func (q *Request) notSent(topic string, err error) error {
	var se *rocketmq.SendError
	if !errors.As(err, &se) {
		return err // refused before anything was sent, or an interceptor's
	}
	stored := "it was not stored"
	for _, a := range se.Attempts {
		var refused *rocketmq.BrokerError
		if !errors.As(a.Err, &refused) && !errors.Is(a.Err, rocketmq.ErrUnavailable) {
			stored = "it may have been stored all the same"
		}
	}
	text := fmt.Sprintf("producer: the request to topic %q could not be sent; %s", topic, stored)
	if errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, rocketmq.ErrTimeout) {
		return fmt.Errorf("%s: %w: %w", text, rocketmq.ErrTimeout, err) // the caller's own deadline
	}
	return fmt.Errorf("%s: %w", text, err)
}

// reply makes a view of the reply and tells the broker whether that worked.
func (p *Pipeline) reply(r *client.Reply) (*rocketmq.MessageView, error) {
	h := &r.Head
	body, err := p.inflater.Inflate(r.Body, h.SysFlag)
	r.Answer(err)
	if err != nil {
		return nil, fmt.Errorf("producer: the reply cannot be read: %w", err)
	}
	props := wire.AppendProperty([]byte(h.Properties), wire.PropArriveTime, strconv.FormatInt(r.Arrived.UnixMilli(), 10))
	v := &rocketmq.MessageView{
		Topic:     p.rt.Unwrap(h.Topic),
		Body:      body,
		Queue:     rocketmq.Queue{Topic: p.rt.Unwrap(h.Topic), ID: int(h.QueueID)},
		BornAt:    time.UnixMilli(h.BornTime),
		StoredAt:  time.UnixMilli(h.StoreTime),
		BornHost:  hostOf(h.BornHost),
		StoreHost: hostOf(h.StoreHost),
		Attempt:   int(h.ReconsumeTimes) + 1,
	}
	var keys []string
	view.Properties(v, string(props), &keys)
	return v, nil
}

// hostOf reads an address as brokers write it, some with a slash before it; the
// zero value if it is none.
func hostOf(s string) netip.AddrPort {
	a, _ := netip.ParseAddrPort(strings.TrimPrefix(s, "/"))
	return a
}

// Abandon takes the place of Wait for a request that ends otherwise.
func (q *Request) Abandon() {
	if !q.expected.Cancel() {
		(<-q.expected.C()).Answer(nil)
	}
}
