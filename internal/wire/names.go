package wire

import (
	"errors"
	"fmt"
	"strings"
)

// Prefixes and names of topics that the system makes.
const (
	RetryPrefix       = "%RETRY%"
	DLQPrefix         = "%DLQ%"
	LMQPrefix         = "%LMQ%"
	SystemTopicPrefix = "rmq_sys_"
	SystemGroupPrefix = "CID_RMQ_SYS_"
	replySuffix       = "_REPLY_TOPIC"

	TopicDefault       = "TBW102" // template of topics created on first use
	TopicSchedule      = "SCHEDULE_TOPIC_XXXX"
	TopicBenchmark     = "BenchmarkTest"
	TopicHalf          = "RMQ_SYS_TRANS_HALF_TOPIC"
	TopicOpHalf        = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
	TopicTrace         = "RMQ_SYS_TRACE_TOPIC"
	TopicTranCheckMax  = "TRANS_CHECK_MAX_TIME_TOPIC"
	TopicSelfTest      = "SELF_TEST_TOPIC"
	TopicOffsetMoved   = "OFFSET_MOVED_EVENT"
	TopicCheckpoint    = "CHECKPOINT_TOPIC"
	TopicTimer         = "rmq_sys_wheel_timer"
	GroupDefaultProd   = "DEFAULT_PRODUCER"
	GroupDefaultCons   = "DEFAULT_CONSUMER"
	GroupInnerProducer = "CLIENT_INNER_PRODUCER"
	GroupRevive        = "CID_RMQ_SYS_REVIVE_GROUP" // reads the checkpoints of POP
)

// NamespaceOrderTopic is the KV namespace of order topics on a name server.
const NamespaceOrderTopic = "ORDER_TOPIC_CONFIG"

// Limits of names, in bytes (they are ASCII).
const (
	MaxTopicName = 127
	MaxGroupName = 120 // so that its retry topic is a topic
)

// ErrName is wrapped by every error about the name of a topic or group.
var ErrName = errors.New("illegal name")

// RetryTopic is the topic of a group's messages to be consumed again.
func RetryTopic(group string) string { return RetryPrefix + group }

// DLQTopic is the topic of a group's dead letters.
func DLQTopic(group string) string { return DLQPrefix + group }

// ReplyTopic is the topic of a cluster's reply messages.
func ReplyTopic(cluster string) string { return cluster + replySuffix }

// IsReplyTopic tells whether topic is named like the reply topic of a cluster.
func IsReplyTopic(topic string) bool { return strings.HasSuffix(topic, replySuffix) }

// IsRetryTopic tells whether topic is the retry topic of some group.
func IsRetryTopic(topic string) bool { return strings.HasPrefix(topic, RetryPrefix) }

// IsDLQTopic tells whether topic holds the dead letters of some group.
func IsDLQTopic(topic string) bool { return strings.HasPrefix(topic, DLQPrefix) }

// GroupOfRetryTopic is the group of a retry topic, "" for any other topic.
func GroupOfRetryTopic(topic string) string {
	if !IsRetryTopic(topic) {
		return ""
	}
	return topic[len(RetryPrefix):]
}

// IsSystemTopic tells whether a topic is the system's, so that it cannot be
// created or deleted by an administrator.
func IsSystemTopic(topic string) bool {
	switch topic {
	case TopicDefault, TopicSchedule, TopicBenchmark, TopicHalf, TopicOpHalf, TopicTrace, TopicTranCheckMax,
		TopicSelfTest, TopicOffsetMoved, TopicCheckpoint:
		return true
	}
	return strings.HasPrefix(topic, SystemTopicPrefix)
}

// MaySendTo tells whether clients may send to a topic, as far as its name says.
func MaySendTo(topic string) bool {
	switch topic {
	case TopicSchedule, TopicHalf, TopicOpHalf, TopicTranCheckMax, TopicSelfTest, TopicOffsetMoved:
		return false
	}
	return true
}

// IsSystemGroup tells whether a group is the system's own.
func IsSystemGroup(group string) bool { return strings.HasPrefix(group, SystemGroupPrefix) }

// ValidateTopic refuses a name that brokers refuse.
func ValidateTopic(name string) error { return validate("topic", name, MaxTopicName) }

// ValidateGroup refuses a name that brokers refuse.
func ValidateGroup(name string) error { return validate("group", name, MaxGroupName) }

func validate(kind, name string, limit int) error {
	if strings.TrimSpace(name) == "" {
		return fmt.Errorf("%w: the %s is blank", ErrName, kind)
	}
	for i := 0; i < len(name); i++ {
		if !nameByte(name[i]) {
			return fmt.Errorf("%w: %s %q: only %%, |, -, _, letters and digits of ASCII are allowed", ErrName, kind, clip([]byte(name)))
		}
	}
	if len(name) > limit {
		return fmt.Errorf("%w: %s %q... has %d characters, at most %d are allowed", ErrName, kind, clip([]byte(name)), len(name), limit)
	}
	return nil
}

func nameByte(c byte) bool {
	switch {
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		return true
	}
	return c == '%' || c == '|' || c == '-' || c == '_'
}
