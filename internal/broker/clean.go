package broker

import (
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Cleaning by hand: CLEAN_EXPIRED_CONSUMEQUEUE (306), CLEAN_UNUSED_TOPIC (316),
// DELETE_EXPIRED_COMMITLOG (329). What the store does by itself is in
// store/clean.go.
//
// Answers: 0; 1 files cannot be removed. 329 is answered at once, the others
// when they are done.
//
// Unlike Apache: 306 keeps the empty queues of topics that exist. Without its
// queue the next message of a topic would have offset 0, and groups that have
// come further would skip it. 316 forgets the offsets of what it removes.

func (b *Broker) handleCleanLog(r *remoting.Request) {
	b.store.TriggerClean()
	r.Reply(wire.RespSuccess, "", nil, nil)
}

func (b *Broker) handleCleanQueues(r *remoting.Request) {
	n, err := b.store.DropEmptyQueues(b.bg.Context(), func(topic string, queueID int32) bool {
		t := b.topics.Lookup(topic)
		return !b.topics.IsSystem(topic) && (t == nil || queueID >= t.Queues())
	})
	b.log.Info("removed empty queues", "queues", n)
	if malformed(r, err) {
		return
	}
	r.Reply(wire.RespSuccess, "", nil, nil)
}

func (b *Broker) handleCleanTopics(r *remoting.Request) {
	for _, topic := range b.store.Topics() {
		if b.topics.Lookup(topic) != nil || b.topics.IsSystem(topic) {
			continue
		}
		if err := b.DeleteTopic(b.bg.Context(), topic); malformed(r, err) {
			return
		}
		b.log.Info("removed the queues of a topic that does not exist", "topic", topic)
	}
	r.Reply(wire.RespSuccess, "", nil, nil)
}
