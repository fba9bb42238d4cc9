package broker

import (
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Queue locks for ordered consumption: LOCK_BATCH_MQ (41), UNLOCK_BATCH_MQ
// (42). Body read: wire.LockBody; onlyThisBroker is ignored, as Apache's broker
// does unless lockInStrictMode is on.
//
// Answers: 0, to 41 with the queues that the client holds now; 1 malformed body.

func (b *Broker) handleLock(r *remoting.Request) {
	body, err := wire.DecodeLockBody(r.Frame().Body)
	if malformed(r, err) {
		return
	}
	held := wire.LockedQueues{Queues: b.locks.Lock(body.Group, body.ClientID, body.Queues)}
	r.Reply(wire.RespSuccess, "", nil, held.AppendJSON(nil))
}

func (b *Broker) handleUnlock(r *remoting.Request) {
	body, err := wire.DecodeLockBody(r.Frame().Body)
	if malformed(r, err) {
		return
	}
	b.locks.Unlock(body.Group, body.ClientID, body.Queues)
	r.Reply(wire.RespSuccess, "", nil, nil)
}
