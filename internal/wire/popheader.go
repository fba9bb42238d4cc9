package wire

// Where a POP begins with a queue of which the group has no offset: PopRequest.InitMode.
const (
	PopFromMin int32 = 0
	PopFromMax int32 = 1
)

// AnyQueue stands for all queues of a broker in the headers of POP requests.
const AnyQueue int32 = -1

// PopOrderQueue is the revive queue of an ordered POP, which has none.
const PopOrderQueue int32 = 999

// PopRequest is the header of POP_MESSAGE (200050). Encoding and decoding
// allocate nothing; decoded slices point into the frame.
type PopRequest struct {
	Group, Topic    []byte
	QueueID         int32 // AnyQueue: any
	MaxMsgs         int32 // 32 at most
	InvisibleMillis int64
	PollMillis      int64 // how long to wait if there is nothing; 0: not at all
	BornTime        int64 // ms; 0: the broker's clock counts
	InitMode        int32
	ExprType, Expr  []byte // empty: all
	Order           bool
	AttemptID       []byte // of an ordered POP that is repeated
}

// EncodeExt writes the fields.
func (h *PopRequest) EncodeExt(e *Encoder) {
	e.Bytes("consumerGroup", h.Group)
	e.Bytes("topic", h.Topic)
	e.Int("queueId", int64(h.QueueID))
	e.Int("maxMsgNums", int64(h.MaxMsgs))
	e.Int("invisibleTime", h.InvisibleMillis)
	e.Int("pollTime", h.PollMillis)
	e.Int("bornTime", h.BornTime)
	e.Int("initMode", int64(h.InitMode))
	optBytes(e, "expType", h.ExprType)
	optBytes(e, "exp", h.Expr)
	e.Bool("order", h.Order)
	optBytes(e, "attemptId", h.AttemptID)
}

var popRequired = [...]string{"consumerGroup", "topic", "queueId", "maxMsgNums", "invisibleTime", "pollTime", "initMode"}

// DecodeExt reads the fields.
func (h *PopRequest) DecodeExt(f *Frame) error {
	*h = PopRequest{}
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
		case "maxMsgNums":
			h.MaxMsgs, bit = fieldInt32("maxMsgNums", v, &err), number(v, 1<<3)
		case "invisibleTime":
			h.InvisibleMillis, bit = fieldInt64("invisibleTime", v, &err), number(v, 1<<4)
		case "pollTime":
			h.PollMillis, bit = fieldInt64("pollTime", v, &err), number(v, 1<<5)
		case "initMode":
			h.InitMode, bit = fieldInt32("initMode", v, &err), number(v, 1<<6)
		case "bornTime":
			h.BornTime = fieldInt64("bornTime", v, &err)
		case "expType":
			h.ExprType = v
		case "exp":
			h.Expr = v
		case "order":
			h.Order = string(v) == "true"
		case "attemptId":
			h.AttemptID = v
		}
		seen |= bit
	}
	if err != nil {
		return err
	}
	return allSeen(seen, popRequired[:])
}

// PopResponse answers a POP, also one that found nothing (210), and a PEEK. The
// three info strings are read with [PopOffsets]. Encoding and decoding allocate
// nothing; decoded slices point into the frame.
type PopResponse struct {
	PopTime         int64 // ms of the broker's clock
	InvisibleMillis int64
	ReviveQueue     int32 // PopOrderQueue: popped in order
	Rest            int64 // messages that are left
	StartOffsets    []byte
	MsgOffsets      []byte
	OrderCounts     []byte
}

// EncodeExt writes the fields.
func (h *PopResponse) EncodeExt(e *Encoder) {
	e.Int("popTime", h.PopTime)
	e.Int("invisibleTime", h.InvisibleMillis)
	e.Int("reviveQid", int64(h.ReviveQueue))
	e.Int("restNum", h.Rest)
	optBytes(e, "startOffsetInfo", h.StartOffsets)
	optBytes(e, "msgOffsetInfo", h.MsgOffsets)
	optBytes(e, "orderCountInfo", h.OrderCounts)
}

var popAnswered = [...]string{"popTime", "invisibleTime", "reviveQid", "restNum"}

// DecodeExt reads the fields.
func (h *PopResponse) DecodeExt(f *Frame) error {
	*h = PopResponse{}
	var seen uint32
	var err error
	for i := range f.fields {
		v := f.fields[i].Value
		bit := uint32(0)
		switch string(f.fields[i].Key) {
		case "popTime":
			h.PopTime, bit = fieldInt64("popTime", v, &err), number(v, 1<<0)
		case "invisibleTime":
			h.InvisibleMillis, bit = fieldInt64("invisibleTime", v, &err), number(v, 1<<1)
		case "reviveQid":
			h.ReviveQueue, bit = fieldInt32("reviveQid", v, &err), number(v, 1<<2)
		case "restNum":
			h.Rest, bit = fieldInt64("restNum", v, &err), number(v, 1<<3)
		case "startOffsetInfo":
			h.StartOffsets = v
		case "msgOffsetInfo":
			h.MsgOffsets = v
		case "orderCountInfo":
			h.OrderCounts = v
		}
		seen |= bit
	}
	if err != nil {
		return err
	}
	return allSeen(seen, popAnswered[:])
}

// AckRequest is the header of ACK_MESSAGE (200051) and, with InvisibleMillis,
// of CHANGE_MESSAGE_INVISIBLETIME (200053).
type AckRequest struct {
	Group           string
	Topic           string // the real one: the retry topic for what came from it
	QueueID         int32
	Handle          string // see PopHandle
	Offset          int64
	InvisibleMillis int64 // 0: absent
}

// EncodeExt writes the fields.
func (h *AckRequest) EncodeExt(e *Encoder) {
	e.Text("consumerGroup", h.Group)
	e.Text("topic", h.Topic)
	e.Int("queueId", int64(h.QueueID))
	e.Text("extraInfo", h.Handle)
	e.Int("offset", h.Offset)
	if h.InvisibleMillis != 0 {
		e.Int("invisibleTime", h.InvisibleMillis)
	}
}

// DecodeExt reads the fields. invisibleTime is required for code 200053.
func (h *AckRequest) DecodeExt(f *Frame) error {
	r := fieldReader{f: f}
	*h = AckRequest{
		Group: r.text("consumerGroup"), Topic: r.text("topic"), QueueID: r.int32("queueId"), Handle: r.text("extraInfo"), Offset: r.int64("offset"),
		InvisibleMillis: r.number("invisibleTime", f.Code == ReqChangeMessageInvisibletime, minInt64, maxInt64),
	}
	return r.err
}

// ChangeInvisibleResponse answers code 200053: the parts of the new handle.
type ChangeInvisibleResponse struct {
	PopTime, InvisibleMillis int64
	ReviveQueue              int32
}

// EncodeExt writes the fields.
func (h *ChangeInvisibleResponse) EncodeExt(e *Encoder) {
	e.Int("popTime", h.PopTime)
	e.Int("invisibleTime", h.InvisibleMillis)
	e.Int("reviveQid", int64(h.ReviveQueue))
}

// DecodeExt reads the fields.
func (h *ChangeInvisibleResponse) DecodeExt(f *Frame) error {
	r := fieldReader{f: f}
	*h = ChangeInvisibleResponse{PopTime: r.int64("popTime"), InvisibleMillis: r.int64("invisibleTime"), ReviveQueue: r.int32("reviveQid")}
	return r.err
}

// NotificationRequest is the header of NOTIFICATION (200054): a long poll that
// says that there is something to pop, and pops nothing.
type NotificationRequest struct {
	Group, Topic string
	QueueID      int32 // AnyQueue: any
	PollMillis   int64
	BornTime     int64 // ms; 0: the broker's clock counts
	Order        bool
	AttemptID    string
}

// EncodeExt writes the fields.
func (h *NotificationRequest) EncodeExt(e *Encoder) {
	e.Text("consumerGroup", h.Group)
	e.Text("topic", h.Topic)
	e.Int("queueId", int64(h.QueueID))
	e.Int("pollTime", h.PollMillis)
	e.Int("bornTime", h.BornTime)
	e.Bool("order", h.Order)
	optText(e, "attemptId", h.AttemptID)
}

// DecodeExt reads the fields.
func (h *NotificationRequest) DecodeExt(f *Frame) error {
	r := fieldReader{f: f}
	*h = NotificationRequest{
		Group: r.text("consumerGroup"), Topic: r.text("topic"), QueueID: r.int32("queueId"), PollMillis: r.int64("pollTime"),
		BornTime: r.optInt64("bornTime"), Order: f.Bool("order"), AttemptID: f.Text("attemptId"),
	}
	return r.err
}

// NotificationResponse answers a notification.
type NotificationResponse struct {
	HasMsg bool
	Full   bool // too many wait already
}

// EncodeExt writes the fields.
func (h *NotificationResponse) EncodeExt(e *Encoder) {
	e.Bool("hasMsg", h.HasMsg)
	e.Bool("pollingFull", h.Full)
}

// DecodeExt reads the fields.
func (h *NotificationResponse) DecodeExt(f *Frame) error {
	r := fieldReader{f: f}
	r.text("hasMsg")
	*h = NotificationResponse{HasMsg: f.Bool("hasMsg"), Full: f.Bool("pollingFull")}
	return r.err
}
