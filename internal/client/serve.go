package client

import (
	"context"
	"strconv"

	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// serve takes the requests that brokers send over the connections a client
// made:
//
//	 39  CHECK_TRANSACTION_STATE         one-way; to a producer
//	 40  NOTIFY_CONSUMER_IDS_CHANGED     one-way
//	220  RESET_CONSUMER_CLIENT_OFFSET    one-way
//	221  GET_CONSUMER_STATUS_FROM_CLIENT
//	307  GET_CONSUMER_RUNNING_INFO
//	309  CONSUME_MESSAGE_DIRECTLY
//	326  PUSH_REPLY_MESSAGE_TO_CLIENT    to whoever waits for it
//
// Any other code is answered with REQUEST_CODE_NOT_SUPPORTED (3). It runs on
// the connection's reader: what may take time goes to a goroutine.
func (r *Runtime) serve(q *remoting.Request) {
	var err error
	switch f := q.Frame(); f.Code {
	case wire.ReqCheckTransactionState:
		r.serveCheck(q)
	case wire.ReqNotifyConsumerIdsChanged:
		err = r.serveIDsChanged(q)
	case wire.ReqResetConsumerClientOffset:
		err = r.serveReset(q)
	case wire.ReqGetConsumerStatusFromClient:
		err = r.serveStatus(q)
	case wire.ReqGetConsumerRunningInfo:
		err = r.serveRunningInfo(q)
	case wire.ReqConsumeMessageDirectly:
		err = r.serveConsume(q)
	case wire.ReqPushReplyMessageToClient:
		err = r.serveReply(q)
	default:
		q.Reply(wire.RespRequestCodeNotSupported, " request type "+strconv.Itoa(int(f.Code))+" not supported", nil, nil)
	}
	if err != nil {
		r.cfg.Logger.Warn("request from a broker refused", "addr", q.Conn().Remote(), "op", opName(q.Frame().Code), "err", err)
		q.Reply(wire.RespSystemError, err.Error(), nil, nil)
	}
}

func (r *Runtime) serveCheck(q *remoting.Request) {
	f := q.Frame()
	if p := r.members.producer(producerGroupOf(f)); p != nil && p.CheckTransaction != nil {
		p.CheckTransaction(q.Conn().Remote(), f.Clone())
	}
	q.Drop() // the answer is END_TRANSACTION, not a response
}

// producerGroupOf reads the group out of the half message in the body.
func producerGroupOf(f *wire.Frame) string {
	var rec wire.Record
	if _, err := wire.DecodeRecord(f.Body, &rec); err != nil {
		return ""
	}
	g, _ := rec.Properties.Lookup(wire.PropProducerGroup)
	return string(g)
}

func (r *Runtime) serveIDsChanged(q *remoting.Request) error {
	var h wire.GroupRequest
	if err := h.DecodeExt(q.Frame()); err != nil {
		return err
	}
	if c := r.members.consumer(h.Group); c != nil {
		c.IDsChanged()
	}
	q.Reply(wire.RespSuccess, "", nil, nil)
	return nil
}

func (r *Runtime) serveReset(q *remoting.Request) error {
	var h wire.ResetOffsetRequest
	if err := h.DecodeExt(q.Frame()); err != nil {
		return err
	}
	table, err := wire.DecodeOffsetTable(q.Frame().Body)
	if err != nil {
		return err
	}
	if c := r.members.consumer(h.Group); c != nil {
		r.group.Go(func(ctx context.Context) { c.ResetOffsets(ctx, h.Topic, table.Offsets) })
	}
	q.Reply(wire.RespSuccess, "", nil, nil)
	return nil
}

func (r *Runtime) serveStatus(q *remoting.Request) error {
	var h wire.ConsumerStatusRequest
	if err := h.DecodeExt(q.Frame()); err != nil {
		return err
	}
	r.answer(q, h.Group, func(_ context.Context, c Consumer) ([]byte, error) {
		st := wire.ConsumerStatus{Queues: c.Offsets(h.Topic)}
		return st.AppendJSON(nil), nil
	})
	return nil
}

func (r *Runtime) serveRunningInfo(q *remoting.Request) error {
	var h wire.RunningInfoRequest
	if err := h.DecodeExt(q.Frame()); err != nil {
		return err
	}
	r.answer(q, h.Group, func(ctx context.Context, c Consumer) ([]byte, error) { return c.RunningInfo(ctx, h.JStack) })
	return nil
}

func (r *Runtime) serveConsume(q *remoting.Request) error {
	var h wire.ConsumeDirectlyRequest
	if err := h.DecodeExt(q.Frame()); err != nil {
		return err
	}
	record := append([]byte(nil), q.Frame().Body...)
	r.answer(q, h.Group, func(ctx context.Context, c Consumer) ([]byte, error) {
		return c.ConsumeDirectly(ctx, h.BrokerName, record)
	})
	return nil
}

// answer runs f for the group's consumer on a goroutine and replies with the
// body it returns.
func (r *Runtime) answer(q *remoting.Request, group string, f func(ctx context.Context, c Consumer) ([]byte, error)) {
	c := r.members.consumer(group)
	if c == nil {
		q.Reply(wire.RespSystemError, "the consumer group "+group+" has no member in this client", nil, nil)
		return
	}
	reply := q.Replier()
	started := r.group.Go(func(ctx context.Context) {
		body, err := f(ctx, c)
		if err != nil {
			reply.Reply(wire.RespSystemError, err.Error(), nil, nil)
			return
		}
		reply.Reply(wire.RespSuccess, "", nil, body)
	})
	if !started {
		reply.Reply(wire.RespSystemError, "the client is closing", nil, nil)
	}
}
