package trans

import (
	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// outcome is what became of a transaction, as far as the index tells.
type outcome uint8

const (
	notFound outcome = iota // rolled back, or not decided
	wasCommitted
	wasGivenUp
)

// outcome looks a half message up where it may have gone.
func (s *Service) outcome(h *half) outcome {
	if len(h.id) == 0 {
		return notFound
	}
	same := func(topic []byte, flag int32) bool {
		b, _ := s.store.Query(nil, query(topic, h.id))
		it := wire.Records(b)
		for {
			var r wire.Record
			ok, err := it.Next(&r)
			if err != nil || !ok {
				return false
			}
			// One send: its copies share the time, further sends of the same
			// message do not.
			if r.SysFlag&wire.SysTranMask == flag && r.BornTime == h.BornTime && r.BornHost == h.BornHost {
				return true
			}
		}
	}
	switch {
	case same(h.topic, wire.SysTranCommit),
		h.delayed && (same([]byte(wire.TopicSchedule), wire.SysTranCommit) || same([]byte(wire.TopicTimer), wire.SysTranCommit)):
		return wasCommitted
	case same([]byte(wire.TopicTranCheckMax), 0):
		return wasGivenUp
	}
	return notFound
}

// query asks for the newest records of a topic with a unique id.
func query(topic, id []byte) store.QueryRequest {
	return store.QueryRequest{Topic: topic, Key: id, Unique: true, End: 1<<63 - 1, Max: 32, MaxBytes: 1 << 20}
}
