package testbroker

import (
	"slices"
	"strconv"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Op is a kind of request, by the number that RequestCode of Apache RocketMQ
// has for it. Any number is valid; those below have names here.
type Op int32

// The requests that tests care about most. What a broker asks of clients is
// marked; all others are asked of it, or of name servers.
const (
	SendMessage      = Op(wire.ReqSendMessage) // all forms: 10, 310, and the batch 320
	PullMessage      = Op(wire.ReqPullMessage) // 11, and 361 of lite pull consumers
	PopMessage       = Op(wire.ReqPopMessage)  // 200050
	AckMessage       = Op(wire.ReqAckMessage)  // 200051, and the batch 200151
	ChangeInvisible  = Op(wire.ReqChangeMessageInvisibletime)
	SendBack         = Op(wire.ReqConsumerSendMsgBack) // 36: a message has failed
	RecallMessage    = Op(wire.ReqRecallMessage)
	SendReply        = Op(wire.ReqSendReplyMessage)          // 324 and 325
	EndTransaction   = Op(wire.ReqEndTransaction)            // commit and rollback
	CheckTransaction = Op(wire.ReqCheckTransactionState)     // broker to producer
	QueryOffset      = Op(wire.ReqQueryConsumerOffset)       // where a group begins
	CommitOffset     = Op(wire.ReqUpdateConsumerOffset)      // commits also come with pulls
	ResetOffset      = Op(wire.ReqResetConsumerClientOffset) // broker to consumer
	MaxOffset        = Op(wire.ReqGetMaxOffset)
	Heartbeat        = Op(wire.ReqHeartBeat)
	UnregisterClient = Op(wire.ReqUnregisterClient)
	ListConsumers    = Op(wire.ReqGetConsumerListByGroup)
	ConsumersChanged = Op(wire.ReqNotifyConsumerIdsChanged) // broker to consumer
	LockQueues       = Op(wire.ReqLockBatchMQ)
	UnlockQueues     = Op(wire.ReqUnlockBatchMQ)
	CreateTopic      = Op(wire.ReqUpdateAndCreateTopic)
	QueryRoute       = Op(wire.ReqGetRouteInfoByTopic)      // name server
	RegisterBroker   = Op(wire.ReqRegisterBroker)           // broker to name server
	PushReply        = Op(wire.ReqPushReplyMessageToClient) // broker to producer
)

// String is the name Apache gives the request, or its number.
func (o Op) String() string {
	if name := wire.RequestName(int32(o)); name != "" {
		return name
	}
	return strconv.Itoa(int(o))
}

// opOf puts the forms of one request together.
func opOf(code int32) Op {
	switch code {
	case wire.ReqSendMessageV2, wire.ReqSendBatchMessage:
		return SendMessage
	case wire.ReqLitePullMessage:
		return PullMessage
	case wire.ReqBatchAckMessage:
		return AckMessage
	case wire.ReqSendReplyMessageV2:
		return SendReply
	}
	return Op(code)
}

// Call is one request on its way. It may be kept.
type Call struct {
	Op       Op
	Code     int32  // the request code itself
	Server   string // the broker's name, or namesrv-0 and so on
	Client   string // address of the other end
	ToClient bool   // the server asks the client
	Oneway   bool   // no answer is wanted
	Topic    string // "" if the request has none; a heartbeat's is its first
	Group    string // of the producer or consumer, likewise
	Queue    int    // -1 if the request has none

	topics, groups []string // all that the request speaks of
	frame          *wire.Frame
}

// Field returns a field of the request's header by Apache's name for it, and
// whether it is there. Sends have one-letter names, see
// SendMessageRequestHeaderV2.
func (c *Call) Field(name string) (string, bool) {
	v, ok := c.frame.Lookup(name)
	return string(v), ok
}

// Body is the request's body. It must not be changed.
func (c *Call) Body() []byte { return c.frame.Body }

// newCall describes a request. It keeps f.
func newCall(f *wire.Frame, server, client string, toClient bool) *Call {
	c := &Call{Op: opOf(f.Code), Code: f.Code, Server: server, Client: client, ToClient: toClient, Oneway: f.IsOneway(), Queue: -1, frame: f}
	queue := "queueId"
	switch f.Code {
	case wire.ReqSendMessageV2, wire.ReqSendBatchMessage, wire.ReqSendReplyMessageV2:
		queue = "e"
		c.add(&c.topics, f.Text("b"))
		c.add(&c.groups, f.Text("a"))
	case wire.ReqHeartBeat:
		if h, err := wire.DecodeHeartbeat(slices.Clone(f.Body)); err == nil {
			for _, g := range h.Consumers {
				c.add(&c.groups, g.Group)
				for _, s := range g.Subscriptions {
					c.add(&c.topics, s.Topic)
				}
			}
			for _, g := range h.Producers {
				c.add(&c.groups, g)
			}
		}
	case wire.ReqLockBatchMQ, wire.ReqUnlockBatchMQ:
		if l, err := wire.DecodeLockBody(slices.Clone(f.Body)); err == nil {
			c.add(&c.groups, l.Group)
			for _, q := range l.Queues {
				c.add(&c.topics, q.Topic)
			}
		}
	}
	for _, name := range [...]string{"topic", "originTopic"} {
		c.add(&c.topics, f.Text(name))
	}
	for _, name := range [...]string{"consumerGroup", "producerGroup", "group"} {
		c.add(&c.groups, f.Text(name))
	}
	if len(c.topics) > 0 {
		c.Topic = c.topics[0]
	}
	if len(c.groups) > 0 {
		c.Group = c.groups[0]
	}
	if v, ok := f.Lookup(queue); ok {
		if id, err := strconv.Atoi(string(v)); err == nil {
			c.Queue = id
		}
	}
	return c
}

func (c *Call) add(list *[]string, name string) {
	if name != "" && !slices.Contains(*list, name) {
		*list = append(*list, name)
	}
}
