package pop

import (
	"math/rand/v2"
	"strconv"

	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/broker/topics"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// PEEK_MESSAGE (200052): what a POP would find, without consequences and without
// a filter; POLLING_INFO (200055): how many requests wait for a queue. Fields
// read: all of wire.PeekRequest and wire.PollingInfoRequest.
//
// Answers: 0, to 200052 with records and how many there are in all; 200052: 19
// there is nothing, 29 more than 32 messages; 1 malformed header; 16 broker,
// topic or group may not be read; 17 no topic; 26 no group; 29 queue out of range.

// HandlePeek runs on a worker.
func (s *Service) HandlePeek(r *remoting.Request) {
	var req wire.PeekRequest
	if err := req.DecodeExt(r.Frame()); err != nil {
		r.Reply(wire.RespSystemError, err.Error(), nil, nil)
		return
	}
	resp := &wire.PopResponse{}
	if req.MaxMsgs > maxMsgs {
		r.Reply(wire.RespInvalidParameter, "at most "+strconv.Itoa(maxMsgs)+" messages can be peeked at once", resp, nil)
		return
	}
	t, code, remark := s.mayRead(req.Topic, req.Group, req.QueueID)
	if code != 0 {
		r.Reply(code, remark, resp, nil)
		return
	}
	p := peek{s: s, group: []byte(req.Group), left: req.MaxMsgs}
	random := rand.Uint32N(100)
	early := random%5 == 0
	if early {
		p.retries(req.Group, t.Name)
	}
	if req.QueueID >= 0 {
		p.queue(t, req.QueueID)
	} else {
		p.topic(t, random)
	}
	if !early {
		p.retries(req.Group, t.Name)
	}
	resp.Rest = p.rest
	if len(p.buf) == 0 {
		r.Reply(wire.RespPullNotFound, store.NoMessageInQueue.String(), resp, nil)
		return
	}
	r.Reply(wire.RespSuccess, store.Found.String(), resp, p.buf)
}

// mayRead is reader, and whether the broker may be read from.
func (s *Service) mayRead(topic, group string, queue int32) (t *topics.Topic, code int32, remark string) {
	if why := s.cfg.Host.MayRead(); why != "" {
		return nil, wire.RespNoPermission, why
	}
	t, _, code, remark = s.reader([]byte(topic), []byte(group), queue)
	return t, code, remark
}

// peek is one look at the messages of a group.
type peek struct {
	s     *Service
	group []byte
	left  int32 // how many are wanted still
	rest  int64
	buf   []byte
}

func (p *peek) retries(group, topic string) {
	for _, name := range retryTopics(group, topic) {
		p.topic(p.s.cfg.Topics.Lookup(name), 0)
	}
}

func (p *peek) topic(t *topics.Topic, first uint32) {
	if t == nil || t.ReadQueues <= 0 {
		return
	}
	n := uint32(t.ReadQueues)
	for i := range n {
		p.queue(t, int32((first%n+i)%n))
	}
}

func (p *peek) queue(t *topics.Topic, id int32) {
	name := []byte(t.Name)
	off := p.s.peekOffset(name, p.group, t.Name, id)
	p.rest += max(p.s.store.MaxOffset(t.Name, id)-off, 0)
	if p.left <= 0 {
		return
	}
	get := store.GetRequest{Topic: name, QueueID: id, Offset: off, MaxMsgs: p.left}
	var res store.GetResult
	p.buf, res = p.s.store.Get(p.buf, get)
	if res.Status == store.OffsetTooSmall || res.Status == store.OffsetOverflowBadly {
		get.Offset = res.NextOffset
		p.buf, res = p.s.store.Get(p.buf, get)
	}
	p.left -= res.Count
}

// HandlePollingInfo runs on the connection's reader.
func (s *Service) HandlePollingInfo(r *remoting.Request) {
	var req wire.PollingInfoRequest
	if err := req.DecodeExt(r.Frame()); err != nil {
		r.Reply(wire.RespSystemError, err.Error(), nil, nil)
		return
	}
	t, code, remark := s.mayRead(req.Topic, req.Group, req.QueueID)
	if code != 0 {
		r.Reply(code, remark, &wire.PollingInfoResponse{}, nil)
		return
	}
	n := s.polls.count(t.Name, req.Group, max(req.QueueID, -1))
	r.Reply(wire.RespSuccess, "", &wire.PollingInfoResponse{Polling: int32(n)}, nil)
}
