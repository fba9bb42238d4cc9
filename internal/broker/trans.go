package broker

import (
	"context"
	"strconv"
	"time"

	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/broker/trans"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Transactions: END_TRANSACTION (37), RESUME_CHECK_HALF_MESSAGE (323); sends
// CHECK_TRANSACTION_STATE (39). What they do is in package trans.
//
// Fields read: 37 all of wire.EndTransactionRequest but names and ids; 323 msgId,
// an offset id.
//
// Answers: 37: 0, once message and op record are in the log, with synchronous
// flush on disk; none at all if commitOrRollback is 0; 1 malformed, no such half
// message, of another group, decided otherwise already, or not stored; 13 and 14
// not stored; 604 it is too late for a message with
// CHECK_IMMUNITY_TIME_IN_SECONDS. 323: 0; 1 no message there, or it is none that
// was given up, or not stored.
//
// Unlike Apache: a request for a transaction that is decided changes nothing: 0
// if it asks for what has happened, else 1.

func (b *Broker) handleEndTransaction(r *remoting.Request) {
	var req wire.EndTransactionRequest
	if malformed(r, req.DecodeExt(r.Frame())) {
		return
	}
	if req.CommitOrRollback == 0 {
		b.trans.End(&req, nil)
		r.Drop()
		return
	}
	replier := r.Replier()
	b.trans.End(&req, func(code int32, remark string) {
		if code != wire.RespSuccess {
			// Most clients do not wait for the answer.
			b.log.Warn("transaction not ended", "group", req.Group, "id", req.MsgID, "code", code, "why", remark)
		}
		replier.Reply(code, remark, nil, nil)
	})
}

func (b *Broker) newTrans() *trans.Service {
	cfg := &b.cfg
	return trans.New(trans.Config{
		Clock: b.clock, Log: b.log, Host: b.host, Offsets: b.offsets,
		Timeout: cfg.TransactionTimeout, Interval: cfg.TransactionCheckEvery, Max: cfg.TransactionCheckMax,
		OpInterval: cfg.TransactionOpEvery, OpSize: cfg.TransactionOpBytes,
		Reserved: cfg.Store.FileReserved,
		Put:      func(m *store.Message, w store.Waiter) (store.PutResult, bool) { return b.store.Put(m, w) },
		Park: func(m *store.Message) {
			switch s := scan(m.Properties); {
			case s.level > 0:
				b.park(nil, m, s.level)
			case s.timer.asked() && !s.timed:
				if _, _, code, why := b.parkTimer(nil, m, &s.timer); code != 0 {
					b.log.Error("time of a committed message is void, delivering it at once", "topic", string(m.Topic), "why", why)
				}
			}
		},
		Ask: b.askProducer,
		GiveUp: func() {
			b.createTopic(wire.TopicTranCheckMax, 1, wire.PermRead|wire.PermWrite, 0)
		},
	})
}

// askProducer hands a check to one producer of a group, to each in turn.
func (b *Broker) askProducer(group string, q *trans.Question) (asked trans.Asked, whom any) {
	list := b.clients.Producers(group)
	q.Header.BrokerName = b.cfg.Name
	cmd := &wire.Command{Code: wire.ReqCheckTransactionState, Ext: &q.Header, Body: q.Body}
	first := int(b.asked.Add(1))
	for i := range list {
		c := list[(first+i)%len(list)]
		conn := c.Conn.(*remoting.Conn)
		if conn.Err() != nil {
			continue
		}
		err := conn.CallOneway(cmd)
		if err == nil {
			return trans.Sent, conn
		}
		b.log.Debug("producer not asked", "group", group, "addr", c.Conn.Remote(), "err", err)
		asked = trans.Busy
	}
	return asked, nil
}

// handleResumeCheck has a message that was given up asked about again.
func (b *Broker) handleResumeCheck(r *remoting.Request) {
	id := r.Frame().Text("msgId")
	_, phy, err := wire.ParseOffsetMsgID(id)
	if malformed(r, err) {
		return
	}
	buf, ok := b.store.ViewMessage(nil, phy)
	var rec wire.Record
	if ok {
		_, err := wire.DecodeRecord(buf, &rec)
		ok = err == nil && string(rec.Topic) == wire.TopicTranCheckMax
	}
	if !ok {
		r.Reply(wire.RespSystemError, "no message of "+wire.TopicTranCheckMax+" at the offset, "+strconv.FormatInt(phy, 10), nil, nil)
		return
	}
	m := trans.Resumed(&rec)
	if res, _ := b.store.Put(&m, nil); !res.Status.Stored() {
		r.Reply(wire.RespSystemError, "Put message back to "+wire.TopicHalf+" failed: "+res.Status.String(), nil, nil)
		return
	}
	r.Reply(wire.RespSuccess, "", nil, nil)
}

// SettleChecks blocks until what was stored before the call has been seen, and
// the checks of transactions that are due now are on their way.
func (b *Broker) SettleChecks(ctx context.Context) error {
	if err := b.store.WaitDispatched(ctx); err != nil {
		return err
	}
	return b.trans.Settle(ctx)
}

// NextCheck is when the next transaction is asked about; false if none is
// undecided. It is right after [Broker.SettleChecks].
func (b *Broker) NextCheck() (time.Time, bool) { return b.trans.NextCheck() }

// AwaitAnswers blocks until the producers have answered all checks.
func (b *Broker) AwaitAnswers(ctx context.Context) error { return b.trans.AwaitAnswers(ctx) }

// CheckTransactions asks about all undecided transactions now, and returns how
// many questions were sent. Those that no producer is there for are asked when
// one comes.
func (b *Broker) CheckTransactions(ctx context.Context) (int, error) {
	if err := b.store.WaitDispatched(ctx); err != nil {
		return 0, err
	}
	return b.trans.CheckNow(ctx)
}

// Undecided is how many transactions are neither committed nor rolled back. It
// is right after [Broker.SettleChecks].
func (b *Broker) Undecided() int { return b.trans.Undecided() }
