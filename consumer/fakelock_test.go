package consumer_test

import (
	"bytes"
	"slices"
	"time"

	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// fakeLock is a queue's lock, as a broker keeps it.
type fakeLock struct {
	client string
	at     time.Time
}

// fakeLockCall is one request to lock or unlock one queue.
type fakeLockCall struct {
	code   int32
	queue  wire.MessageQueue
	client string
	at     time.Time
	held   bool // by that client afterwards
}

// fakeSend is a message that came by SEND_MESSAGE_V2.
type fakeSend struct {
	topic, body, group string
	h                  wire.SendRequest // slices not valid
	props              wire.Properties
}

const fakeLifetime = 60 * time.Second

func (f *fake) lock(r *remoting.Request) {
	body, err := wire.DecodeLockBody(r.Frame().Body)
	if err != nil || body.Group != "G" {
		f.tb.Errorf("lock of group %q: %v", body.Group, err)
	}
	f.mu.Lock()
	var ok wire.LockedQueues
	for _, q := range body.Queues {
		l, taken := f.locks[q]
		held := !taken || l.client == body.ClientID || time.Since(l.at) > fakeLifetime
		if held {
			f.locks[q] = fakeLock{body.ClientID, time.Now()}
			ok.Queues = append(ok.Queues, q)
		}
		f.lockCalls = append(f.lockCalls, fakeLockCall{wire.ReqLockBatchMQ, q, body.ClientID, time.Now(), held})
	}
	f.mu.Unlock()
	r.Reply(wire.RespSuccess, "", nil, ok.AppendJSON(nil))
}

func (f *fake) unlock(r *remoting.Request) {
	body, err := wire.DecodeLockBody(r.Frame().Body)
	if err != nil {
		f.tb.Errorf("unlock: %v", err)
	}
	f.mu.Lock()
	for _, q := range body.Queues {
		held := f.locks[q].client == body.ClientID
		if held {
			delete(f.locks, q)
		}
		f.lockCalls = append(f.lockCalls, fakeLockCall{wire.ReqUnlockBatchMQ, q, body.ClientID, time.Now(), false})
	}
	f.mu.Unlock()
	r.Reply(wire.RespSuccess, "", nil, nil)
}

// steal gives a lock to somebody who is not there, or frees it with "".
func (f *fake) steal(topic string, queue int, client string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	q := wire.MessageQueue{Topic: topic, Broker: "b", QueueID: int32(queue)}
	if client == "" {
		delete(f.locks, q)
		return
	}
	f.locks[q] = fakeLock{client, time.Now()}
}

// owner is who has a queue's lock.
func (f *fake) owner(topic string, queue int) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.locks[wire.MessageQueue{Topic: topic, Broker: "b", QueueID: int32(queue)}].client
}

// calls are the lock requests of a code for a queue.
func (f *fake) calls(code int32, topic string, queue int) []fakeLockCall {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(f.lockCalls), func(c fakeLockCall) bool {
		return c.code != code || c.queue.Topic != topic || c.queue.QueueID != int32(queue)
	})
}

func (f *fake) send(r *remoting.Request) {
	var h wire.SendRequest
	if !f.decode(r, &h) {
		return
	}
	s := fakeSend{topic: string(h.Topic), body: string(r.Frame().Body), h: h, props: bytes.Clone(h.Properties), group: string(h.Group)}
	f.mu.Lock()
	f.sends = append(f.sends, s)
	f.mu.Unlock()
	r.Reply(wire.RespSuccess, "", &wire.SendResponse{OffsetMsgID: []byte("0"), QueueID: h.QueueID}, nil)
}
