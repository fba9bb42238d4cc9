package producer

import "context"

// Recall takes a delayed message back before it is delivered, and returns its
// id. handle is the Result.RecallHandle of the send, topic that of the message.
// The broker must be of 5.3.2 or later and have recallMessageEnable set.
//
// Recall asks the broker that holds the message, and no other; deadlines and
// the number of attempts are those of [Producer.Send]. A message that was
// recalled already can be recalled again.
//
// Errors: rocketmq.ErrNotRecallable for a handle that is none or of another
// topic, which is found without asking, and for a message whose time has come;
// rocketmq.ErrNoPermission if the broker takes no recalls, rocketmq.ErrUnsupported
// if it does not know them; rocketmq.ErrTopicNotFound, ErrUnavailable,
// ErrConnection, ErrTimeout, ErrBusy; a *rocketmq.BrokerError with the broker's own
// words; after Close rocketmq.ErrClosed.
func (p *Producer) Recall(ctx context.Context, topic, handle string) (messageID string, err error) {
	return p.pipe.Recall(ctx, topic, handle)
}
