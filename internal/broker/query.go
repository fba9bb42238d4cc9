package broker

import (
	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Messages by key: QUERY_MESSAGE (12). Fields read: topic, key, maxNum,
// beginTimestamp, endTimestamp, _UNIQUE_KEY_QUERY: the key is a unique id, and
// maxNum is 32 whatever it says.
//
// Answers: 0 with the newest maxNum records, at most maxMsgsNumBatch, as the
// body, in the order of the log; 1 malformed header; 22 none, with both
// extension fields 0.
//
// Unlike Apache, which returns what has the key's hash and leaves it to clients
// to look: the records have the topic and the key, their store time is within
// the range to the millisecond, none comes twice, and the body stays below the
// size of the largest frame.

const (
	uniqueQueryMax = 32       // defaultQueryMaxNum
	queryHead      = 64 << 10 // room in a frame for what is not body
)

func (b *Broker) handleQuery(r *remoting.Request) {
	var req wire.QueryMessageRequest
	if malformed(r, req.DecodeExt(r.Frame())) {
		return
	}
	if req.UniqueKey {
		req.MaxNum = uniqueQueryMax
	}
	limit := b.cfg.MaxFrame
	if limit <= 0 {
		limit = wire.DefaultMaxFrame
	}
	body, res := b.store.Query(nil, store.QueryRequest{
		Topic: []byte(req.Topic), Key: []byte(req.Key), Unique: req.UniqueKey,
		Begin: req.Begin, End: req.End, Max: req.MaxNum, MaxBytes: max(1, limit-queryHead),
	})
	resp := wire.QueryMessageResponse{IndexTime: res.IndexTime, IndexOffset: res.IndexPhy}
	if res.Count == 0 {
		r.Reply(wire.RespQueryNotFound, "can not find message, maybe time range not correct", &resp, nil)
		return
	}
	r.Reply(wire.RespSuccess, "", &resp, body)
}
