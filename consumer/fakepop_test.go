package consumer_test

import (
	"slices"
	"time"

	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// fakePop is the part of a fake broker that a Simple consumer uses, for one group.
// What is not acknowledged in time comes again as the messages of the retry topic
// do. Its fields are guarded by the fake's mutex.
type fakePop struct {
	f     *fake
	name  string                      // the broker's
	at    map[wire.MessageQueue]int64 // how far a queue was popped
	out   []*fakeDelivery             // invisible
	again []*fakeDelivery             // to be delivered once more
	polls []*fakeNotice
	retry int64 // offsets in the retry topic
	revQ  int32

	pops    []wire.PopRequest // slices not valid
	notices int
	acks    []wire.AckRequest // and changes
	batches []wire.BatchAck
	buried  []wire.SendBackRequest
}

type fakeDelivery struct {
	topic  string
	record wire.Record
	tag    string
	handle wire.PopHandle
	timer  *time.Timer
}

type fakeNotice struct {
	topic string
	reply remoting.Replier
}

func newFakePop(f *fake) *fakePop {
	p := &fakePop{f: f, name: "b", at: make(map[wire.MessageQueue]int64)}
	for code, h := range map[int32]func(r *remoting.Request){
		wire.ReqPopMessage: p.pop, wire.ReqAckMessage: p.ack, wire.ReqChangeMessageInvisibletime: p.ack,
		wire.ReqBatchAckMessage: p.ackBatch, wire.ReqNotification: p.notify, wire.ReqConsumerSendMsgBack: p.sendBack,
	} {
		f.on(code, func(r *remoting.Request) bool {
			h(r)
			return true
		})
	}
	f.on(wire.ReqGetSubscriptiongroupConfig, func(r *remoting.Request) bool {
		g := wire.NewSubscriptionGroup("G")
		r.Reply(wire.RespSuccess, "", nil, g.AppendJSON(nil))
		return true
	})
	f.arrived = p.arrivedLocked
	return p
}

// pop takes messages of the topic, those that come again first.
func (p *fakePop) pop(r *remoting.Request) {
	var h wire.PopRequest
	if !p.f.decode(r, &h) {
		return
	}
	p.f.mu.Lock()
	defer p.f.mu.Unlock()
	topic := string(h.Topic)
	p.pops = append(p.pops, wire.PopRequest{QueueID: h.QueueID, MaxMsgs: h.MaxMsgs, InvisibleMillis: h.InvisibleMillis, PollMillis: h.PollMillis, InitMode: h.InitMode})
	now := time.Now().UnixMilli()
	res := wire.PopResponse{PopTime: now, InvisibleMillis: h.InvisibleMillis, ReviveQueue: p.revQ}
	p.revQ = (p.revQ + 1) % 8
	var body []byte
	take := func(d *fakeDelivery) {
		body = wire.AppendRecord(body, &d.record)
		p.out = append(p.out, d)
		d.timer = time.AfterFunc(time.Duration(d.handle.InvisibleMillis)*time.Millisecond, func() { p.expire(d, d.handle) })
	}
	n := int32(0)
	p.again = slices.DeleteFunc(p.again, func(d *fakeDelivery) bool {
		if d.topic != topic || n == h.MaxMsgs {
			return false
		}
		n++
		d.handle.PopTime, d.handle.InvisibleMillis, d.handle.ReviveQueue, d.handle.Start = now, h.InvisibleMillis, res.ReviveQueue, d.handle.Offset
		d.record.Properties = wire.AppendProperty(d.record.Properties, wire.PropPopCK, d.handle.String())
		take(d)
		return true
	})
	t := p.f.topics[topic]
	for id, msgs := range t.queues {
		q := wire.MessageQueue{Topic: topic, QueueID: int32(id)}
		var offs []int64
		for _, m := range msgs {
			if m.offset < p.at[q] {
				continue
			}
			if n == h.MaxMsgs {
				res.Rest++
				continue
			}
			p.at[q] = m.offset + 1
			if exp := string(h.Expr); exp != "*" && wire.JavaHash(exp) != wire.JavaHash(m.tag) {
				continue
			}
			n++
			d := &fakeDelivery{topic: topic, tag: m.tag}
			_, _ = wire.DecodeRecord(m.record, &d.record)
			if len(offs) == 0 {
				res.StartOffsets = wire.AppendPopStart(res.StartOffsets, wire.PopNormal, int32(id), m.offset)
			}
			offs = append(offs, m.offset)
			start, _ := wire.PopStart(res.StartOffsets, wire.PopNormal, int32(id))
			d.handle = wire.PopHandle{
				Start: start, PopTime: now, InvisibleMillis: h.InvisibleMillis, ReviveQueue: res.ReviveQueue, Retry: wire.PopNormal,
				Broker: p.name, QueueID: int32(id), Offset: m.offset,
			}
			take(d)
		}
		if len(offs) > 0 {
			res.MsgOffsets = wire.AppendPopOffsets(res.MsgOffsets, wire.PopNormal, int32(id), offs)
		}
	}
	if n == 0 {
		r.Reply(wire.RespPollingTimeout, "NO_MESSAGE_IN_QUEUE", &res, nil)
		return
	}
	r.Reply(wire.RespSuccess, "FOUND", &res, body)
}

// expire has a delivery come again, unless its handle is another one by now.
func (p *fakePop) expire(d *fakeDelivery, h wire.PopHandle) {
	p.f.mu.Lock()
	defer p.f.mu.Unlock()
	i := slices.Index(p.out, d)
	if i < 0 || d.handle != h {
		return
	}
	p.out = slices.Delete(p.out, i, i+1)
	d.record.ReconsumeTimes++
	d.record.PhyOffset = 100_000 + p.retry
	d.handle.Retry, d.handle.QueueID, d.handle.Offset = wire.PopRetryV1, 0, p.retry
	d.record.QueueID, d.record.QueueOffset = 0, p.retry
	p.retry++
	p.again = append(p.again, d)
	p.arrivedLocked()
}

// find is the delivery that a handle names.
func (p *fakePop) findLocked(h wire.PopHandle) int {
	return slices.IndexFunc(p.out, func(d *fakeDelivery) bool { return d.handle == h })
}

func (p *fakePop) ack(r *remoting.Request) {
	var h wire.AckRequest
	if !p.f.decode(r, &h) {
		return
	}
	p.f.mu.Lock()
	defer p.f.mu.Unlock()
	p.acks = append(p.acks, h)
	handle, err := wire.ParsePopHandle(h.Handle)
	i := p.findLocked(handle)
	if err != nil || i < 0 || h.Topic != wire.PopTopic(handle.Retry, "G", p.out[i].topic) || h.Offset != handle.Offset || h.QueueID != handle.QueueID {
		r.Reply(wire.RespNoMessage, "unknown handle "+h.Handle, nil, nil)
		return
	}
	d := p.out[i]
	d.timer.Stop()
	if r.Frame().Code == wire.ReqAckMessage {
		p.out = slices.Delete(p.out, i, i+1)
		r.Reply(wire.RespSuccess, "", nil, nil)
		return
	}
	d.handle.Start, d.handle.PopTime, d.handle.InvisibleMillis, d.handle.ReviveQueue = h.Offset, time.Now().UnixMilli(), h.InvisibleMillis, 7
	renewed := d.handle
	d.timer = time.AfterFunc(time.Duration(h.InvisibleMillis)*time.Millisecond, func() { p.expire(d, renewed) })
	r.Reply(wire.RespSuccess, "", &wire.ChangeInvisibleResponse{PopTime: d.handle.PopTime, InvisibleMillis: h.InvisibleMillis, ReviveQueue: 7}, nil)
}

func (p *fakePop) ackBatch(r *remoting.Request) {
	b, err := wire.DecodeBatchAck(r.Frame().Body)
	if err != nil {
		p.f.tb.Errorf("batch: %v", err)
	}
	p.f.mu.Lock()
	defer p.f.mu.Unlock()
	p.batches = append(p.batches, b)
	for _, a := range b.Acks {
		for _, off := range a.Offsets() {
			h := wire.PopHandle{
				Start: a.Start, PopTime: a.PopTime, InvisibleMillis: a.InvisibleMillis, ReviveQueue: a.ReviveQueue, Retry: a.Retry,
				Broker: b.Broker, QueueID: a.QueueID, Offset: off,
			}
			if i := p.findLocked(h); i >= 0 && p.out[i].topic == a.Topic {
				p.out[i].timer.Stop()
				p.out = slices.Delete(p.out, i, i+1)
			}
		}
	}
	r.Reply(wire.RespSuccess, "", nil, nil)
}

func (p *fakePop) notify(r *remoting.Request) {
	var h wire.NotificationRequest
	if !p.f.decode(r, &h) {
		return
	}
	p.f.mu.Lock()
	defer p.f.mu.Unlock()
	p.notices++
	if p.hasLocked(h.Topic) {
		r.Reply(wire.RespSuccess, "", &wire.NotificationResponse{HasMsg: true}, nil)
		return
	}
	n := &fakeNotice{h.Topic, r.Replier()}
	p.polls = append(p.polls, n)
	time.AfterFunc(time.Duration(h.PollMillis)*time.Millisecond, func() {
		p.f.mu.Lock()
		defer p.f.mu.Unlock()
		if i := slices.Index(p.polls, n); i >= 0 {
			p.polls = slices.Delete(p.polls, i, i+1)
			n.reply.Reply(wire.RespSuccess, "", &wire.NotificationResponse{}, nil)
		}
	})
}

func (p *fakePop) hasLocked(topic string) bool {
	for id, msgs := range p.f.topics[topic].queues {
		if n := len(msgs); n > 0 && msgs[n-1].offset >= p.at[wire.MessageQueue{Topic: topic, QueueID: int32(id)}] {
			return true
		}
	}
	return slices.ContainsFunc(p.again, func(d *fakeDelivery) bool { return d.topic == topic })
}

func (p *fakePop) arrivedLocked() {
	p.polls = slices.DeleteFunc(p.polls, func(n *fakeNotice) bool {
		if !p.hasLocked(n.topic) {
			return false
		}
		n.reply.Reply(wire.RespSuccess, "", &wire.NotificationResponse{HasMsg: true}, nil)
		return true
	})
}

func (p *fakePop) sendBack(r *remoting.Request) {
	var h wire.SendBackRequest
	if !p.f.decode(r, &h) {
		return
	}
	p.f.mu.Lock()
	p.buried = append(p.buried, h)
	p.f.mu.Unlock()
	r.Reply(wire.RespSuccess, "", nil, nil)
}

// invisible is how many messages were received and are neither acknowledged nor
// to come again, requests how many there were.
func (p *fakePop) counts() (invisible, pops, notices int) {
	p.f.mu.Lock()
	defer p.f.mu.Unlock()
	return len(p.out), len(p.pops), p.notices
}
