package broker

import (
	"github.com/gorocketmq/rocketmq/internal/broker/topics"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Retries that clients send as ordinary messages to %RETRY%group: consumers in
// order, when a message has had all its attempts, and others when they could
// not send a message back (36, sendback.go).
//
// Such a message waits for the delay that its properties say, or is a dead
// letter and goes to %DLQ%group at once: if its reconsumeTimes are more than
// the limit, which is the request's maxReconsumeTimes or else the group's
// retryMaxTimes, or if a member of the group has locked a queue: a group that
// consumes in order sends nothing here but what it has given up.
//
// Unlike Apache the latter is not for messages that have had no retry of several:
// those are dead letters that an administrator sends again.

// retry is the part of a send's checks that is the retry topics'.
func (op *sendOp) retry(t *topics.Topic) bool {
	b := op.b
	group := wire.GroupOfRetryTopic(t.Name)
	g, created := b.groups.Get([]byte(group))
	if created {
		b.saveGroups()
	}
	if g == nil {
		return op.fail(wire.RespSubscriptionGroupNotExist, "group "+group+" does not exist")
	}
	limit := g.RetryMaxTimes
	if op.req.MaxReconsumeTimes > 0 {
		limit = op.req.MaxReconsumeTimes
	}
	again := op.req.ReconsumeTimes == 0 && op.req.MaxReconsumeTimes > 0
	if op.req.ReconsumeTimes > limit || b.locks.Locked(group) && !again {
		op.msg.Topic, op.msg.QueueID = []byte(b.deadLetters(group).Name), 0
		op.dead = true
	}
	return true
}

// deadLetters is the topic of a group's dead letters. It is made if it is
// missing, with the one queue that Apache gives it.
func (b *Broker) deadLetters(group string) *topics.Topic {
	return b.createTopic(wire.DLQTopic(group), 1, wire.PermRead|wire.PermWrite, 0)
}

// appendDead appends the properties of a dead letter that a client sent.
func appendDead(dst []byte, p wire.Properties) []byte {
	return wire.AppendProperty(p.Without(dst, wire.PropDelay), wire.PropDelay, "-1")
}
