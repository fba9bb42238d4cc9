package broker

import (
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Recalling a delayed message: RECALL_MESSAGE (370).
//
// Answers: 16, as an Apache broker with recallMessageEnable=false, its default,
// does. Messages with a delay level cannot be recalled in Apache either, only
// those with a time of delivery, which are not taken yet.

func (b *Broker) handleRecall(r *remoting.Request) {
	r.Reply(wire.RespNoPermission, "recall failed, operation is forbidden", regionField{b.region}, nil)
}

// regionField is MSG_REGION alone.
type regionField struct{ region []byte }

// EncodeExt implements wire.ExtEncoder.
func (x regionField) EncodeExt(e *wire.Encoder) { e.Bytes("MSG_REGION", x.region) }
