package broker

import (
	"strings"

	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Offsets: QUERY_CONSUMER_OFFSET (14), UPDATE_CONSUMER_OFFSET (15),
// SEARCH_OFFSET_BY_TIMESTAMP (29), GET_MAX_OFFSET (30), GET_MIN_OFFSET (31),
// GET_EARLIEST_MSG_STORETIME (32). The fields are those of the wire headers.
//
// Answers: 0; 1 malformed header; 14: 22 no offset known; 15: 17 no topic, 26
// no group.
//
// Unlike Apache 5.3.3, code 14 answers 0 for a queue that is still empty and
// whose minimum is 0, as 4.9.7 does: 5.3.3 answers "not found" there, the
// client then asks for the maximum, and a message that is stored between the
// two requests is never consumed. With setZeroIfNotFound=false it is 22.

func (b *Broker) handleQueryOffset(r *remoting.Request) {
	var req wire.QueryOffsetRequest
	if malformed(r, req.DecodeExt(r.Frame())) {
		return
	}
	if off, ok := b.offsets.Offset([]byte(req.Group), []byte(req.Topic), req.QueueID); ok {
		r.Reply(wire.RespSuccess, "", &wire.OffsetResponse{Offset: off}, nil)
		return
	}
	switch {
	case req.HasSetZero && !req.SetZero:
		r.Reply(wire.RespQueryNotFound, "Not found, do not set to zero, maybe this group boot first", nil, nil)
	case b.startsAtZero(req.Topic, req.QueueID):
		r.Reply(wire.RespSuccess, "", &wire.OffsetResponse{}, nil)
	default:
		r.Reply(wire.RespQueryNotFound, "Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first", nil, nil)
	}
}

// startsAtZero tells whether a group without an offset is to begin at 0: the
// queue has lost nothing yet, and its first message is not cold.
func (b *Broker) startsAtZero(topic string, queueID int32) bool {
	t := b.topics.Lookup(topic)
	if t == nil || queueID < 0 || queueID >= t.Queues() || b.store.MinOffset(topic, queueID) > 0 {
		return false
	}
	return b.store.MaxOffset(topic, queueID) == 0 || b.store.MessageInMemory(topic, queueID, 0)
}

func (b *Broker) handleUpdateOffset(r *remoting.Request) {
	var req wire.UpdateOffsetRequest
	if malformed(r, req.DecodeExt(r.Frame())) {
		return
	}
	switch {
	case b.groups.Lookup(req.Group) == nil:
		r.Reply(wire.RespSubscriptionGroupNotExist, "group "+req.Group+" does not exist", nil, nil)
	case b.topics.Lookup(req.Topic) == nil:
		r.Reply(wire.RespTopicNotExist, "topic "+req.Topic+" does not exist", nil, nil)
	case b.offsets.Commit([]byte(req.Group), []byte(req.Topic), req.QueueID, req.Offset):
		r.Reply(wire.RespSuccess, "", nil, nil)
	default:
		r.Reply(wire.RespSuccess, "Offset has been previously reset", nil, nil)
	}
}

func (b *Broker) handleSearchOffset(r *remoting.Request) {
	var req wire.SearchOffsetRequest
	if malformed(r, req.DecodeExt(r.Frame())) {
		return
	}
	upper := strings.EqualFold(req.Boundary, wire.BoundaryUpper)
	off := b.store.OffsetByTime(req.Topic, req.QueueID, req.Timestamp, upper)
	r.Reply(wire.RespSuccess, "", &wire.OffsetResponse{Offset: off}, nil)
}

func (b *Broker) handleMaxOffset(r *remoting.Request) {
	var req wire.QueueRequest
	if malformed(r, req.DecodeExt(r.Frame())) {
		return
	}
	r.Reply(wire.RespSuccess, "", &wire.OffsetResponse{Offset: b.store.MaxOffset(req.Topic, req.QueueID)}, nil)
}

func (b *Broker) handleMinOffset(r *remoting.Request) {
	var req wire.QueueRequest
	if malformed(r, req.DecodeExt(r.Frame())) {
		return
	}
	r.Reply(wire.RespSuccess, "", &wire.OffsetResponse{Offset: b.store.MinOffset(req.Topic, req.QueueID)}, nil)
}

func (b *Broker) handleEarliestTime(r *remoting.Request) {
	var req wire.QueueRequest
	if malformed(r, req.DecodeExt(r.Frame())) {
		return
	}
	at := b.store.EarliestStoreTime(req.Topic, req.QueueID)
	r.Reply(wire.RespSuccess, "", &wire.TimestampResponse{Timestamp: at}, nil)
}
