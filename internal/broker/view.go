package broker

import (
	"strconv"

	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Single messages: VIEW_MESSAGE_BY_ID (33). Fields read: offset, a position in
// the commit log.
//
// Answers: 0 with one record as the body; 1 malformed header or no record there.

func (b *Broker) handleView(r *remoting.Request) {
	var req wire.ViewMessageRequest
	if malformed(r, req.DecodeExt(r.Frame())) {
		return
	}
	rec, ok := b.store.ViewMessage(nil, req.Offset)
	if !ok {
		r.Reply(wire.RespSystemError, "can not find message by the offset, "+strconv.FormatInt(req.Offset, 10), nil, nil)
		return
	}
	r.Reply(wire.RespSuccess, "", nil, rec)
}
