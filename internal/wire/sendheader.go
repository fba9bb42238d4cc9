package wire

// SendRequest is the header of SEND_MESSAGE (10), SEND_MESSAGE_V2 (310),
// SEND_BATCH_MESSAGE (320), SEND_REPLY_MESSAGE (324) and its V2 (325). Encoding
// and decoding allocate nothing; decoded slices point into the frame.
type SendRequest struct {
	Group              []byte // producer group
	Topic              []byte
	DefaultTopic       []byte // template for topics created on first use
	DefaultTopicQueues int32
	QueueID            int32 // negative: the broker chooses
	SysFlag            int32 // Sys... bits
	BornTime           int64 // ms since 1970
	Flag               int32 // the user's
	Properties         Properties
	ReconsumeTimes     int32
	UnitMode           bool
	MaxReconsumeTimes  int32 // 0: absent, the group's limit counts; only for retry topics
	Batch              bool  // the body is a batch
	BrokerName         []byte
}

// EncodeExt writes the single letters of the V2 codes.
func (h *SendRequest) EncodeExt(e *Encoder) {
	e.Bytes("a", h.Group)
	e.Bytes("b", h.Topic)
	e.Bytes("c", h.DefaultTopic)
	e.Int("d", int64(h.DefaultTopicQueues))
	e.Int("e", int64(h.QueueID))
	e.Int("f", int64(h.SysFlag))
	e.Int("g", h.BornTime)
	e.Int("h", int64(h.Flag))
	optBytes(e, "i", h.Properties)
	e.Int("j", int64(h.ReconsumeTimes))
	e.Bool("k", h.UnitMode)
	if h.MaxReconsumeTimes != 0 {
		e.Int("l", int64(h.MaxReconsumeTimes))
	}
	e.Bool("m", h.Batch)
	optBytes(e, "n", h.BrokerName)
}

// EncodeV1Ext writes the long names of codes 10 and 324.
func (h *SendRequest) EncodeV1Ext(e *Encoder) {
	e.Bytes("producerGroup", h.Group)
	e.Bytes("topic", h.Topic)
	e.Bytes("defaultTopic", h.DefaultTopic)
	e.Int("defaultTopicQueueNums", int64(h.DefaultTopicQueues))
	e.Int("queueId", int64(h.QueueID))
	e.Int("sysFlag", int64(h.SysFlag))
	e.Int("bornTimestamp", h.BornTime)
	e.Int("flag", int64(h.Flag))
	optBytes(e, "properties", h.Properties)
	e.Int("reconsumeTimes", int64(h.ReconsumeTimes))
	e.Bool("unitMode", h.UnitMode)
	if h.MaxReconsumeTimes != 0 {
		e.Int("maxReconsumeTimes", int64(h.MaxReconsumeTimes))
	}
	e.Bool("batch", h.Batch)
	optBytes(e, "bname", h.BrokerName)
}

// sendRequired are the letters a to h, which must be there.
const sendRequired = 1<<8 - 1

var sendLongNames = [...]string{
	"producerGroup", "topic", "defaultTopic", "defaultTopicQueueNums", "queueId", "sysFlag", "bornTimestamp", "flag",
}

// DecodeExt reads either form, by the code of the frame.
func (h *SendRequest) DecodeExt(f *Frame) error {
	*h = SendRequest{}
	long := f.Code == ReqSendMessage || f.Code == ReqSendReplyMessage
	var seen uint32
	var err error
	for i := range f.fields {
		x := &f.fields[i]
		letter := byte(0)
		switch {
		case long:
			letter = sendLetter(x.Key)
		case len(x.Key) == 1:
			letter = x.Key[0]
		}
		if letter >= 'a' && letter <= 'n' {
			h.set(letter, x.Value, &seen, &err)
		}
	}
	if err != nil {
		return err
	}
	if lack := sendRequired &^ seen; lack != 0 {
		return h.lacks(lack, long)
	}
	return nil
}

func (h *SendRequest) set(letter byte, v []byte, seen *uint32, err *error) {
	if len(v) > 0 || letter <= 'c' {
		*seen |= 1 << (letter - 'a')
	}
	switch letter {
	case 'a':
		h.Group = v
	case 'b':
		h.Topic = v
	case 'c':
		h.DefaultTopic = v
	case 'd':
		h.DefaultTopicQueues = fieldInt32("defaultTopicQueueNums (d)", v, err)
	case 'e':
		h.QueueID = fieldInt32("queueId (e)", v, err)
	case 'f':
		h.SysFlag = fieldInt32("sysFlag (f)", v, err)
	case 'g':
		h.BornTime = fieldInt64("bornTimestamp (g)", v, err)
	case 'h':
		h.Flag = fieldInt32("flag (h)", v, err)
	case 'i':
		h.Properties = v
	case 'j':
		h.ReconsumeTimes = fieldInt32("reconsumeTimes (j)", v, err)
	case 'k':
		h.UnitMode = ParseBool(v)
	case 'l':
		h.MaxReconsumeTimes = fieldInt32("maxReconsumeTimes (l)", v, err)
	case 'm':
		h.Batch = ParseBool(v)
	case 'n':
		h.BrokerName = v
	}
}

func (h *SendRequest) lacks(mask uint32, long bool) error {
	for i, name := range sendLongNames {
		if mask&(1<<i) != 0 {
			if !long {
				name += " (" + string(rune('a'+i)) + ")"
			}
			return missing(name)
		}
	}
	return nil
}

// sendLetter is the V2 letter of a long name, 0 for any other name.
func sendLetter(key []byte) byte {
	switch string(key) {
	case "producerGroup":
		return 'a'
	case "topic":
		return 'b'
	case "defaultTopic":
		return 'c'
	case "defaultTopicQueueNums":
		return 'd'
	case "queueId":
		return 'e'
	case "sysFlag":
		return 'f'
	case "bornTimestamp":
		return 'g'
	case "flag":
		return 'h'
	case "properties":
		return 'i'
	case "reconsumeTimes":
		return 'j'
	case "unitMode":
		return 'k'
	case "maxReconsumeTimes":
		return 'l'
	case "batch":
		return 'm'
	case "bname":
		return 'n'
	}
	return 0
}

// SendResponse answers a send. A successful answer without these fields makes
// Java clients throw. Encoding and decoding allocate nothing; decoded slices
// point into the frame.
type SendResponse struct {
	OffsetMsgID   []byte // of a batch: one id per message, in order, comma between
	QueueID       int32
	QueueOffset   int64  // of the first message
	TransactionID []byte // the client's message id; 5.x only
	BatchUniqID   []byte // inner batches only
	RecallHandle  []byte // timer messages only
	Region        []byte // MSG_REGION
	TraceOn       bool   // false only if the broker said so
}

// EncodeExt writes the fields.
func (h *SendResponse) EncodeExt(e *Encoder) {
	e.Bytes("msgId", h.OffsetMsgID)
	e.Int("queueId", int64(h.QueueID))
	e.Int("queueOffset", h.QueueOffset)
	optBytes(e, "transactionId", h.TransactionID)
	optBytes(e, "batchUniqId", h.BatchUniqID)
	optBytes(e, "recallHandle", h.RecallHandle)
	optBytes(e, "MSG_REGION", h.Region)
	e.Bool("TRACE_ON", h.TraceOn)
}

// DecodeExt reads the fields.
func (h *SendResponse) DecodeExt(f *Frame) error {
	*h = SendResponse{TraceOn: true}
	var seen uint32
	var err error
	for i := range f.fields {
		x := &f.fields[i]
		switch string(x.Key) {
		case "msgId":
			h.OffsetMsgID = x.Value
			seen |= 1
		case "queueId":
			h.QueueID = fieldInt32("queueId", x.Value, &err)
			seen |= number(x.Value, 2)
		case "queueOffset":
			h.QueueOffset = fieldInt64("queueOffset", x.Value, &err)
			seen |= number(x.Value, 4)
		case "transactionId":
			h.TransactionID = x.Value
		case "batchUniqId":
			h.BatchUniqID = x.Value
		case "recallHandle":
			h.RecallHandle = x.Value
		case "MSG_REGION":
			h.Region = x.Value
		case "TRACE_ON":
			h.TraceOn = string(x.Value) != "false"
		}
	}
	switch {
	case err != nil:
		return err
	case seen&1 == 0:
		return missing("msgId")
	case seen&2 == 0:
		return missing("queueId")
	case seen&4 == 0:
		return missing("queueOffset")
	}
	return nil
}

// SendBackRequest is the header of CONSUMER_SEND_MSG_BACK (36).
type SendBackRequest struct {
	Offset            int64 // in the commit log of the broker that is asked
	Group             string
	DelayLevel        int32 // -1: to the dead letters, 0: the broker decides
	OriginMsgID       string
	OriginTopic       string
	UnitMode          bool
	MaxReconsumeTimes int32
	HasMax            bool // whether MaxReconsumeTimes is there; set by DecodeExt, on encoding implied by a value other than 0
	BrokerName        string
}

// EncodeExt writes the fields.
func (h *SendBackRequest) EncodeExt(e *Encoder) {
	e.Int("offset", h.Offset)
	e.Text("group", h.Group)
	e.Int("delayLevel", int64(h.DelayLevel))
	optText(e, "originMsgId", h.OriginMsgID)
	optText(e, "originTopic", h.OriginTopic)
	e.Bool("unitMode", h.UnitMode)
	if h.HasMax || h.MaxReconsumeTimes != 0 {
		e.Int("maxReconsumeTimes", int64(h.MaxReconsumeTimes))
	}
	optText(e, "bname", h.BrokerName)
}

// DecodeExt reads the fields.
func (h *SendBackRequest) DecodeExt(f *Frame) error {
	r := fieldReader{f: f}
	*h = SendBackRequest{
		Offset: r.int64("offset"), Group: r.text("group"), DelayLevel: r.int32("delayLevel"),
		OriginMsgID: f.Text("originMsgId"), OriginTopic: f.Text("originTopic"), UnitMode: f.Bool("unitMode"),
		MaxReconsumeTimes: r.optInt32("maxReconsumeTimes"), HasMax: r.has("maxReconsumeTimes"), BrokerName: f.Text("bname"),
	}
	return r.err
}
