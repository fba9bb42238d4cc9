package send

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// attempt is one request and its answer. It is pooled: between Start and Done
// it belongs to the connection, else to the sender.
type attempt struct {
	p    *Pipeline
	op   int32 // request code
	flag int32
	head wire.SendRequest
	body []byte // the message's own, or in buf

	ids   []byte // a unique id for each message, the same for all attempts of a send
	props []byte
	buf   []byte // compressed body, or batch

	answered chan struct{} // one slot, reused
	err      error
	code     rocketmq.Code
	remark   string
	offsetID []byte // comma-separated for a batch
	txnID    []byte // only if it is not the unique id
	recall   string
	queueID  int32
	offset   int64
	region   []byte
	noTrace  bool // the broker wants no traces
}

var _ remoting.Exchange = (*attempt)(nil)

func newAttempt(p *Pipeline) *attempt {
	return &attempt{p: p, answered: make(chan struct{}, 1)}
}

// Bounds of the buffers that go back to the pool: of all, and of the one for
// batches.
const (
	maxKept      = 64 << 10
	maxKeptBatch = 512 << 10
)

// idLen is the length of a unique id.
const idLen = 32

// prepare fills in what all attempts of a send have in common.
func (a *attempt) prepare(m *rocketmq.Message, o *Options, t *topic, now time.Time) {
	a.ids = a.p.rt.AppendID(a.ids[:0], now)
	a.props = appendProperties(a.props[:0], m, a.ids, o.Extra)
	a.body = m.Body
	a.header(t, now)
	if m.ReplyTo != nil {
		a.op = wire.ReqSendReplyMessageV2
	}
	if p := &a.p.packer; len(m.Body) >= p.threshold {
		if b, ok := p.pack(a.buf[:0], m.Body); ok {
			a.buf, a.body, a.head.SysFlag = b, b, p.sysFlag
		} else {
			a.buf = b
		}
	}
	a.head.SysFlag |= o.SysFlag
}

// prepareBatch is prepare for several messages in one request. Their bodies are
// never compressed: the broker stores each on its own.
func (a *attempt) prepareBatch(ms []*rocketmq.Message, t *topic, now time.Time) {
	size := 0
	for _, m := range ms {
		size += batchedSize(m)
	}
	a.ids, a.buf = slices.Grow(a.ids[:0], len(ms)*idLen), slices.Grow(a.buf[:0], size)
	for _, m := range ms {
		n := len(a.ids)
		a.ids = a.p.rt.AppendID(a.ids, now)
		a.props = appendProperties(a.props[:0], m, a.ids[n:], nil)
		a.buf = wire.AppendBatchItem(a.buf, 0, m.Body, a.props)
	}
	a.props = wire.AppendProperty(a.props[:0], wire.PropWait, "true")
	a.body = a.buf
	a.header(t, now)
	a.op, a.head.Batch = wire.ReqSendBatchMessage, true
}

func (a *attempt) header(t *topic, now time.Time) {
	a.op, a.flag = wire.ReqSendMessageV2, 0
	a.region, a.noTrace = a.region[:0], false
	a.head = wire.SendRequest{
		Group:              a.p.group,
		Topic:              t.bytes,
		DefaultTopic:       defaultTopic,
		DefaultTopicQueues: a.p.autoQueues,
		BornTime:           now.UnixMilli(),
		Properties:         a.props,
	}
}

var defaultTopic = []byte(wire.TopicDefault)

// release lets go of the message.
func (a *attempt) release() {
	a.body, a.err, a.remark, a.recall = nil, nil, "", ""
	a.head = wire.SendRequest{}
	a.ids = a.ids[:0]
	// A send that ends before it is prepared must not be told as the one before.
	a.flag, a.region, a.noTrace = 0, a.region[:0], false
	for _, b := range []*[]byte{&a.ids, &a.props, &a.offsetID} {
		if cap(*b) > maxKept {
			*b = nil
		}
	}
	if cap(a.buf) > maxKeptBatch {
		a.buf = nil
	}
}

// aim sets where the next request goes and forgets the last answer.
func (a *attempt) aim(r *ref) {
	a.head.QueueID, a.head.BrokerName = r.id, r.name
	a.err, a.code, a.remark, a.recall = nil, 0, "", ""
}

// do sends the request and waits for the answer. nil means that there is one,
// whatever its code.
func (a *attempt) do(ctx context.Context, c *remoting.Conn, deadline time.Time) error {
	token, err := c.Start(a, deadline, remoting.Inline)
	if err != nil {
		return err
	}
	ended := ctx.Done()
	if ended == nil {
		<-a.answered
		return a.err
	}
	select {
	case <-a.answered:
	case <-ended:
		if c.Cancel(token) {
			return context.Cause(ctx)
		}
		<-a.answered // it is being answered right now
	}
	return a.err
}

// opName is the request's name in errors.
func (a *attempt) opName() string { return wire.RequestName(a.op) }

// AppendFrame implements [remoting.Appender].
func (a *attempt) AppendFrame(dst []byte, opaque int32) []byte {
	e := wire.Begin(dst, wire.Head{Code: a.op, Flag: a.flag, Opaque: opaque, Encoding: a.p.encoding, Signer: a.p.signer})
	a.head.EncodeExt(&e)
	return e.Finish(a.body)
}

// Done implements [remoting.Exchange].
func (a *attempt) Done(f *wire.Frame, err error) {
	a.take(f, err)
	a.answered <- struct{}{}
}

// take keeps what the answer says; the frame is gone afterwards.
func (a *attempt) take(f *wire.Frame, err error) {
	if err == nil {
		err = a.read(f)
	}
	a.err = err
}

// read decodes an answer. An error means that the message is stored but the
// answer makes no sense.
func (a *attempt) read(f *wire.Frame) error {
	a.code = rocketmq.Code(f.Code)
	if len(f.Remark) > 0 {
		a.remark = string(f.Remark)
	}
	if !a.stored() {
		return nil
	}
	var h wire.SendResponse
	if err := h.DecodeExt(f); err != nil {
		return fmt.Errorf("stored, but the broker's answer cannot be read: %w", err)
	}
	a.offsetID = append(a.offsetID[:0], h.OffsetMsgID...)
	a.queueID, a.offset = h.QueueID, h.QueueOffset
	a.txnID = a.txnID[:0]
	if string(h.TransactionID) != string(a.ids) {
		a.txnID = append(a.txnID, h.TransactionID...)
	}
	if len(h.RecallHandle) > 0 {
		a.recall = string(h.RecallHandle)
	}
	a.region, a.noTrace = append(a.region[:0], h.Region...), !h.TraceOn
	return nil
}

// stored reports whether the broker has the message.
func (a *attempt) stored() bool { return statusOf(a.code) != StatusUnknown }

// result is that of the only message. Its ids share one allocation.
func (a *attempt) result(q rocketmq.Queue) Result {
	n := len(a.ids)
	k := n + len(a.offsetID)
	var room [128]byte
	b := append(room[:0], a.ids...)
	b = append(b, a.offsetID...)
	b = append(b, a.txnID...)
	ids := string(b)
	r := Result{
		MessageID: ids[:n], OffsetID: ids[n:k], TransactionID: ids[k:],
		Queue: q, Offset: a.offset, Status: statusOf(a.code), RecallHandle: a.recall,
	}
	if r.TransactionID == "" {
		r.TransactionID = r.MessageID
	}
	r.Queue.ID = int(a.queueID) // the broker has the last word
	return r
}

// results passes the results of the n messages of a batch to put, in order. A
// broker that answers with one offset id for all (an inner batch) gives it to
// the first.
func (a *attempt) results(q rocketmq.Queue, n int, put func(i int, r Result)) {
	ids, offsetIDs := string(a.ids), string(a.offsetID)
	q.ID = int(a.queueID)
	for i := range n {
		id := ids[i*idLen : (i+1)*idLen]
		var offsetID string
		offsetID, offsetIDs, _ = strings.Cut(offsetIDs, ",")
		put(i, Result{
			MessageID: id, TransactionID: id, OffsetID: offsetID,
			Queue: q, Offset: a.offset + int64(i), Status: statusOf(a.code),
		})
	}
}
