package send

import (
	"context"
	"fmt"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// attempt is one request and its answer. It is pooled: between Start and Done
// it belongs to the connection, else to the sender.
type attempt struct {
	p    *Pipeline
	head wire.SendRequest
	body []byte // the message's own
	code rocketmq.Code

	id    []byte // unique id, the same for all attempts of a send
	props []byte

	answered chan struct{} // one slot, reused
	err      error
	remark   string
	offsetID []byte
	txnID    []byte // only if it is not id
	recall   string
	queueID  int32
	offset   int64
}

var _ remoting.Exchange = (*attempt)(nil)

func newAttempt(p *Pipeline) *attempt {
	return &attempt{p: p, answered: make(chan struct{}, 1)}
}

// maxKeptProps bounds the buffers that go back to the pool.
const maxKeptProps = 4 << 10

// prepare fills in what all attempts of a send have in common.
func (a *attempt) prepare(m *rocketmq.Message, t *topic, now time.Time) {
	a.id = a.p.rt.AppendID(a.id[:0], now)
	a.props = appendProperties(a.props[:0], m, a.id)
	a.body = m.Body
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
	if cap(a.props) > maxKeptProps {
		a.props = nil
	}
}

// do sends the request and waits for the answer. nil means that there is one,
// whatever its code.
func (a *attempt) do(ctx context.Context, c *remoting.Conn, r *ref, deadline time.Time) error {
	a.head.QueueID, a.head.BrokerName = r.id, r.name
	a.err, a.remark, a.recall = nil, "", ""
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

// AppendFrame implements remoting.Exchange.
func (a *attempt) AppendFrame(dst []byte, opaque int32) []byte {
	e := wire.Begin(dst, wire.Head{Code: wire.ReqSendMessageV2, Opaque: opaque, Encoding: a.p.encoding, Signer: a.p.signer})
	a.head.EncodeExt(&e)
	return e.Finish(a.body)
}

// Done implements remoting.Exchange.
func (a *attempt) Done(f *wire.Frame, err error) {
	if err == nil {
		err = a.read(f)
	}
	a.err = err
	a.answered <- struct{}{}
}

// read takes what is needed out of the answer, which is gone afterwards.
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
	if string(h.TransactionID) != string(a.id) {
		a.txnID = append(a.txnID, h.TransactionID...)
	}
	if len(h.RecallHandle) > 0 {
		a.recall = string(h.RecallHandle)
	}
	return nil
}

// stored reports whether the broker's code says that it has the message.
func (a *attempt) stored() bool { return statusOf(a.code) != StatusUnknown }

// result is what the caller gets. Its ids share one string: they are made and
// dropped together.
func (a *attempt) result(q rocketmq.Queue) Result {
	n := len(a.id)
	k := n + len(a.offsetID)
	var room [128]byte
	b := append(room[:0], a.id...)
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
