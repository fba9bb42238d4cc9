package rocketmq

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

// NewReply makes the answer to a request, a message that a producer's Request
// sent. Any producer can send it, best with Send: the broker then reports when
// it could not hand the reply to the client that waits, as a [BrokerError] with
// [CodeSystemError]. body may be empty, and tag, keys and properties may be set.
// The message keeps body, and takes only strings from req.
//
// A message that is no request, or does not say where the reply is to go, is
// [ErrInvalidMessage]; the error names the properties that are missing.
func NewReply(req *MessageView, body []byte) (*Message, error) {
	if req == nil {
		return nil, &invalidMessage{"", errors.New("there is no request to reply to")}
	}
	var cluster string
	var to ReplyTo
	for name, value := range req.Properties.All() {
		switch name {
		case wire.PropCluster:
			cluster = value
		case wire.PropReplyToClient:
			to.Client = value
		case wire.PropCorrelationID:
			to.CorrelationID = value
		case wire.PropTTL:
			if ms, err := strconv.ParseInt(value, 10, 64); err == nil && ms > 0 {
				to.TTL = time.Duration(min(ms, maxTTL)) * time.Millisecond
			}
		}
	}
	var missing []string
	for _, p := range [...]struct{ name, value string }{
		{wire.PropCorrelationID, to.CorrelationID}, {wire.PropReplyToClient, to.Client}, {wire.PropCluster, cluster},
	} {
		if p.value == "" {
			missing = append(missing, p.name)
		}
	}
	if missing != nil {
		return nil, &invalidMessage{req.Topic, fmt.Errorf("message %s is no request that can be replied to: it has no property %s", req.ID, strings.Join(missing, ", "))}
	}
	return &Message{Topic: wire.ReplyTopic(cluster), Body: body, ReplyTo: &to}, nil
}

// maxTTL keeps nonsense from becoming a negative time; in milliseconds.
const maxTTL = int64(1<<63-1) / int64(time.Millisecond)
