package wire

// Bits of PullRequest.SysFlag.
const (
	PullCommitOffset int32 = 1  // store CommitOffset
	PullSuspend      int32 = 2  // wait for messages if there are none
	PullSubscription int32 = 4  // Subscription of this request counts, not the heartbeat's
	PullClassFilter  int32 = 8  // legacy
	PullLite         int32 = 16 // of a lite pull consumer
)

// PullRequest is the header of PULL_MESSAGE (11) and LITE_PULL_MESSAGE (361).
// Encoding and decoding allocate nothing; decoded slices point into the frame.
type PullRequest struct {
	Group          []byte
	Topic          []byte
	QueueID        int32
	Offset         int64 // the first one wanted
	MaxMsgs        int32
	SysFlag        int32 // Pull... bits
	CommitOffset   int64
	SuspendMillis  int64 // how long to wait with PullSuspend
	Subscription   []byte
	SubVersion     int64
	ExpressionType []byte // empty: TAG
	MaxMsgBytes    int32  // 0: absent
	BrokerName     []byte
}

// EncodeExt writes the fields.
func (h *PullRequest) EncodeExt(e *Encoder) {
	e.Bytes("consumerGroup", h.Group)
	e.Bytes("topic", h.Topic)
	e.Int("queueId", int64(h.QueueID))
	e.Int("queueOffset", h.Offset)
	e.Int("maxMsgNums", int64(h.MaxMsgs))
	e.Int("sysFlag", int64(h.SysFlag))
	e.Int("commitOffset", h.CommitOffset)
	e.Int("suspendTimeoutMillis", h.SuspendMillis)
	optBytes(e, "subscription", h.Subscription)
	e.Int("subVersion", h.SubVersion)
	optBytes(e, "expressionType", h.ExpressionType)
	if h.MaxMsgBytes != 0 {
		e.Int("maxMsgBytes", int64(h.MaxMsgBytes))
	}
	optBytes(e, "bname", h.BrokerName)
}

var pullRequired = [...]string{
	"consumerGroup", "topic", "queueId", "queueOffset", "maxMsgNums", "sysFlag", "commitOffset", "suspendTimeoutMillis", "subVersion",
}

// DecodeExt reads the fields.
func (h *PullRequest) DecodeExt(f *Frame) error {
	*h = PullRequest{}
	var seen uint32
	var err error
	for i := range f.fields {
		v := f.fields[i].Value
		bit := uint32(0)
		switch string(f.fields[i].Key) {
		case "consumerGroup":
			h.Group, bit = v, 1<<0
		case "topic":
			h.Topic, bit = v, 1<<1
		case "queueId":
			h.QueueID, bit = fieldInt32("queueId", v, &err), number(v, 1<<2)
		case "queueOffset":
			h.Offset, bit = fieldInt64("queueOffset", v, &err), number(v, 1<<3)
		case "maxMsgNums":
			h.MaxMsgs, bit = fieldInt32("maxMsgNums", v, &err), number(v, 1<<4)
		case "sysFlag":
			h.SysFlag, bit = fieldInt32("sysFlag", v, &err), number(v, 1<<5)
		case "commitOffset":
			h.CommitOffset, bit = fieldInt64("commitOffset", v, &err), number(v, 1<<6)
		case "suspendTimeoutMillis":
			h.SuspendMillis, bit = fieldInt64("suspendTimeoutMillis", v, &err), number(v, 1<<7)
		case "subVersion":
			h.SubVersion, bit = fieldInt64("subVersion", v, &err), number(v, 1<<8)
		case "subscription":
			h.Subscription = v
		case "expressionType":
			h.ExpressionType = v
		case "maxMsgBytes":
			h.MaxMsgBytes = fieldInt32("maxMsgBytes", v, &err)
		case "bname":
			h.BrokerName = v
		}
		seen |= bit
	}
	if err != nil {
		return err
	}
	return allSeen(seen, pullRequired[:])
}

// number is bit unless v is empty, which stands for an absent number.
func number(v []byte, bit uint32) uint32 {
	if len(v) == 0 {
		return 0
	}
	return bit
}

// allSeen names the first required field whose bit is not set.
func allSeen(seen uint32, names []string) error {
	for i, name := range names {
		if seen&(1<<i) == 0 {
			return missing(name)
		}
	}
	return nil
}

// PullResponse answers a pull that succeeded, found nothing (19), filtered all
// (20) or was out of range (21): all of these carry the four offsets, or Java
// clients throw. Encoding and decoding allocate nothing.
type PullResponse struct {
	SuggestBrokerID int64 // whom to ask next time
	NextOffset      int64
	MinOffset       int64
	MaxOffset       int64
	OffsetDelta     int64 // to be added to each queue offset; 0: absent
	ForbiddenType   int32 // with code 16: why; 0: absent
}

// EncodeExt writes the fields.
func (h *PullResponse) EncodeExt(e *Encoder) {
	e.Int("suggestWhichBrokerId", h.SuggestBrokerID)
	e.Int("nextBeginOffset", h.NextOffset)
	e.Int("minOffset", h.MinOffset)
	e.Int("maxOffset", h.MaxOffset)
	if h.OffsetDelta != 0 {
		e.Int("offsetDelta", h.OffsetDelta)
	}
	if h.ForbiddenType != 0 {
		e.Int("forbiddenType", int64(h.ForbiddenType))
	}
}

var pullAnswered = [...]string{"suggestWhichBrokerId", "nextBeginOffset", "minOffset", "maxOffset"}

// DecodeExt reads the fields.
func (h *PullResponse) DecodeExt(f *Frame) error {
	*h = PullResponse{}
	var seen uint32
	var err error
	for i := range f.fields {
		v := f.fields[i].Value
		bit := uint32(0)
		switch string(f.fields[i].Key) {
		case "suggestWhichBrokerId":
			h.SuggestBrokerID, bit = fieldInt64("suggestWhichBrokerId", v, &err), number(v, 1<<0)
		case "nextBeginOffset":
			h.NextOffset, bit = fieldInt64("nextBeginOffset", v, &err), number(v, 1<<1)
		case "minOffset":
			h.MinOffset, bit = fieldInt64("minOffset", v, &err), number(v, 1<<2)
		case "maxOffset":
			h.MaxOffset, bit = fieldInt64("maxOffset", v, &err), number(v, 1<<3)
		case "offsetDelta":
			h.OffsetDelta = fieldInt64("offsetDelta", v, &err)
		case "forbiddenType":
			h.ForbiddenType = fieldInt32("forbiddenType", v, &err)
		}
		seen |= bit
	}
	if err != nil {
		return err
	}
	return allSeen(seen, pullAnswered[:])
}
