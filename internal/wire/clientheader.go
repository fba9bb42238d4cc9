package wire

// UnregisterClientRequest is the header of UNREGISTER_CLIENT (35): one group a
// request.
type UnregisterClientRequest struct {
	ClientID      string
	ProducerGroup string // one of the two
	ConsumerGroup string
}

// EncodeExt writes the fields.
func (h *UnregisterClientRequest) EncodeExt(e *Encoder) {
	e.Text("clientID", h.ClientID)
	optText(e, "producerGroup", h.ProducerGroup)
	optText(e, "consumerGroup", h.ConsumerGroup)
}

// DecodeExt reads the fields.
func (h *UnregisterClientRequest) DecodeExt(f *Frame) error {
	r := fieldReader{f: f}
	*h = UnregisterClientRequest{ClientID: r.text("clientID"), ProducerGroup: f.Text("producerGroup"), ConsumerGroup: f.Text("consumerGroup")}
	return r.err
}

// GroupRequest is the header of codes 38, 40 and 203: one consumer group.
type GroupRequest struct{ Group string }

// EncodeExt writes the field.
func (h *GroupRequest) EncodeExt(e *Encoder) { e.Text("consumerGroup", h.Group) }

// DecodeExt reads the field.
func (h *GroupRequest) DecodeExt(f *Frame) error {
	r := fieldReader{f: f}
	h.Group = r.text("consumerGroup")
	return r.err
}

// HeartbeatResponse answers HEART_BEAT (34). 4.9 brokers send none of it.
type HeartbeatResponse struct {
	V2         bool // the broker understands heartbeats without subscriptions
	SubChanged bool
}

// EncodeExt writes the fields.
func (h *HeartbeatResponse) EncodeExt(e *Encoder) {
	e.Bool("IS_SUPPORT_HEART_BEAT_V2", h.V2)
	e.Bool("IS_SUB_CHANGE", h.SubChanged)
}

// DecodeExt reads the fields. It never fails.
func (h *HeartbeatResponse) DecodeExt(f *Frame) error {
	*h = HeartbeatResponse{V2: f.Bool("IS_SUPPORT_HEART_BEAT_V2"), SubChanged: f.Bool("IS_SUB_CHANGE")}
	return nil
}

// EndTransactionRequest is the header of END_TRANSACTION (37).
type EndTransactionRequest struct {
	Group            string // producer group
	TranStateOffset  int64  // queue offset of the half message
	CommitLogOffset  int64  // its place in the commit log
	CommitOrRollback int32  // SysTranCommit, SysTranRollback or 0 for unknown
	FromCheck        bool   // answers CHECK_TRANSACTION_STATE
	MsgID            string
	TransactionID    string
	Topic            string // 5.x
	BrokerName       string
}

// EncodeExt writes the fields.
func (h *EndTransactionRequest) EncodeExt(e *Encoder) {
	e.Text("producerGroup", h.Group)
	e.Int("tranStateTableOffset", h.TranStateOffset)
	e.Int("commitLogOffset", h.CommitLogOffset)
	e.Int("commitOrRollback", int64(h.CommitOrRollback))
	e.Bool("fromTransactionCheck", h.FromCheck)
	e.Text("msgId", h.MsgID)
	optText(e, "transactionId", h.TransactionID)
	optText(e, "topic", h.Topic)
	optText(e, "bname", h.BrokerName)
}

// DecodeExt reads the fields. commitOrRollback must be one of its three values.
func (h *EndTransactionRequest) DecodeExt(f *Frame) error {
	r := fieldReader{f: f}
	*h = EndTransactionRequest{
		Group: r.text("producerGroup"), TranStateOffset: r.int64("tranStateTableOffset"), CommitLogOffset: r.int64("commitLogOffset"),
		CommitOrRollback: r.int32("commitOrRollback"), FromCheck: f.Bool("fromTransactionCheck"), MsgID: f.Text("msgId"),
		TransactionID: f.Text("transactionId"), Topic: f.Text("topic"), BrokerName: f.Text("bname"),
	}
	if c := h.CommitOrRollback; r.err == nil && c != 0 && c != SysTranCommit && c != SysTranRollback {
		return &FieldError{"commitOrRollback", "must be 0, 8 (commit) or 12 (roll back)"}
	}
	return r.err
}

// CheckTransactionRequest is the header of CHECK_TRANSACTION_STATE (39), broker
// to client. The body is the half message.
type CheckTransactionRequest struct {
	Topic           string // 5.x: of the half messages
	TranStateOffset int64
	CommitLogOffset int64
	MsgID           string
	TransactionID   string
	OffsetMsgID     string
	BrokerName      string
}

// EncodeExt writes the fields.
func (h *CheckTransactionRequest) EncodeExt(e *Encoder) {
	optText(e, "topic", h.Topic)
	e.Int("tranStateTableOffset", h.TranStateOffset)
	e.Int("commitLogOffset", h.CommitLogOffset)
	optText(e, "msgId", h.MsgID)
	optText(e, "transactionId", h.TransactionID)
	optText(e, "offsetMsgId", h.OffsetMsgID)
	optText(e, "bname", h.BrokerName)
}

// DecodeExt reads the fields.
func (h *CheckTransactionRequest) DecodeExt(f *Frame) error {
	r := fieldReader{f: f}
	*h = CheckTransactionRequest{
		Topic: f.Text("topic"), TranStateOffset: r.int64("tranStateTableOffset"), CommitLogOffset: r.int64("commitLogOffset"),
		MsgID: f.Text("msgId"), TransactionID: f.Text("transactionId"), OffsetMsgID: f.Text("offsetMsgId"), BrokerName: f.Text("bname"),
	}
	return r.err
}

// RunningInfoRequest is the header of GET_CONSUMER_RUNNING_INFO (307).
type RunningInfoRequest struct {
	Group    string
	ClientID string
	JStack   bool // with the stacks of the threads
}

// EncodeExt writes the fields.
func (h *RunningInfoRequest) EncodeExt(e *Encoder) {
	e.Text("consumerGroup", h.Group)
	e.Text("clientId", h.ClientID)
	e.Bool("jstackEnable", h.JStack)
}

// DecodeExt reads the fields.
func (h *RunningInfoRequest) DecodeExt(f *Frame) error {
	r := fieldReader{f: f}
	*h = RunningInfoRequest{Group: r.text("consumerGroup"), ClientID: r.text("clientId"), JStack: f.Bool("jstackEnable")}
	return r.err
}

// ConsumeDirectlyRequest is the header of CONSUME_MESSAGE_DIRECTLY (309). The
// body, broker to client, is one record.
type ConsumeDirectlyRequest struct {
	Group      string
	ClientID   string
	MsgID      string
	BrokerName string
	Topic      string // 5.x
}

// EncodeExt writes the fields.
func (h *ConsumeDirectlyRequest) EncodeExt(e *Encoder) {
	e.Text("consumerGroup", h.Group)
	optText(e, "clientId", h.ClientID)
	optText(e, "msgId", h.MsgID)
	optText(e, "brokerName", h.BrokerName)
	optText(e, "topic", h.Topic)
}

// DecodeExt reads the fields.
func (h *ConsumeDirectlyRequest) DecodeExt(f *Frame) error {
	r := fieldReader{f: f}
	*h = ConsumeDirectlyRequest{
		Group: r.text("consumerGroup"), ClientID: f.Text("clientId"), MsgID: f.Text("msgId"),
		BrokerName: f.Text("brokerName"), Topic: f.Text("topic"),
	}
	return r.err
}

// ResetOffsetRequest is the header of RESET_CONSUMER_CLIENT_OFFSET (220), broker
// to client, and of INVOKE_BROKER_TO_RESET_OFFSET (222).
type ResetOffsetRequest struct {
	Topic     string
	Group     string
	Timestamp int64 // ms since 1970; -1: the maximum
	Force     bool  // forward as well
	OneQueue  bool  // 222, 5.x: only QueueID, to Offset unless that is -1
	QueueID   int32
	Offset    int64
}

// EncodeExt writes the fields.
func (h *ResetOffsetRequest) EncodeExt(e *Encoder) {
	e.Text("topic", h.Topic)
	e.Text("group", h.Group)
	e.Int("timestamp", h.Timestamp)
	e.Bool("isForce", h.Force)
	if h.OneQueue {
		e.Int("queueId", int64(h.QueueID))
		e.Int("offset", h.Offset)
	}
}

// DecodeExt reads the fields. QueueID and Offset are -1 if absent.
func (h *ResetOffsetRequest) DecodeExt(f *Frame) error {
	r := fieldReader{f: f}
	*h = ResetOffsetRequest{
		Topic: r.text("topic"), Group: r.text("group"), Timestamp: r.int64("timestamp"), Force: f.Bool("isForce"),
		QueueID: -1, Offset: -1,
	}
	if r.has("queueId") {
		h.QueueID = r.int32("queueId")
		h.OneQueue = h.QueueID >= 0
	}
	if r.has("offset") {
		h.Offset = r.int64("offset")
	}
	return r.err
}

// ConsumerStatusRequest is the header of GET_CONSUMER_STATUS_FROM_CLIENT (221)
// and INVOKE_BROKER_TO_GET_CONSUMER_STATUS (223).
type ConsumerStatusRequest struct {
	Topic      string
	Group      string
	ClientAddr string // a client id; "" for all
}

// EncodeExt writes the fields.
func (h *ConsumerStatusRequest) EncodeExt(e *Encoder) {
	e.Text("topic", h.Topic)
	e.Text("group", h.Group)
	optText(e, "clientAddr", h.ClientAddr)
}

// DecodeExt reads the fields.
func (h *ConsumerStatusRequest) DecodeExt(f *Frame) error {
	r := fieldReader{f: f}
	*h = ConsumerStatusRequest{Topic: r.text("topic"), Group: r.text("group"), ClientAddr: f.Text("clientAddr")}
	return r.err
}

// PushReplyRequest is the header of PUSH_REPLY_MESSAGE_TO_CLIENT (326), broker
// to client: a reply message with where it was born and stored.
type PushReplyRequest struct {
	Group, Topic, DefaultTopic    string
	DefaultTopicQueues, QueueID   int32
	SysFlag, Flag, ReconsumeTimes int32
	BornTime, StoreTime           int64 // ms since 1970
	Properties                    string
	UnitMode                      bool
	BornHost, StoreHost           string // ip:port
}

// EncodeExt writes the fields.
func (h *PushReplyRequest) EncodeExt(e *Encoder) {
	e.Text("producerGroup", h.Group)
	e.Text("topic", h.Topic)
	e.Text("defaultTopic", h.DefaultTopic)
	e.Int("defaultTopicQueueNums", int64(h.DefaultTopicQueues))
	e.Int("queueId", int64(h.QueueID))
	e.Int("sysFlag", int64(h.SysFlag))
	e.Int("bornTimestamp", h.BornTime)
	e.Int("flag", int64(h.Flag))
	optText(e, "properties", h.Properties)
	e.Int("reconsumeTimes", int64(h.ReconsumeTimes))
	e.Bool("unitMode", h.UnitMode)
	e.Text("bornHost", h.BornHost)
	e.Text("storeHost", h.StoreHost)
	e.Int("storeTimestamp", h.StoreTime)
}

// DecodeExt reads the fields.
func (h *PushReplyRequest) DecodeExt(f *Frame) error {
	r := fieldReader{f: f}
	*h = PushReplyRequest{
		Group: r.text("producerGroup"), Topic: r.text("topic"), DefaultTopic: r.text("defaultTopic"),
		DefaultTopicQueues: r.int32("defaultTopicQueueNums"), QueueID: r.int32("queueId"), SysFlag: r.int32("sysFlag"),
		BornTime: r.int64("bornTimestamp"), Flag: r.int32("flag"), Properties: f.Text("properties"),
		ReconsumeTimes: r.optInt32("reconsumeTimes"), UnitMode: f.Bool("unitMode"),
		BornHost: r.text("bornHost"), StoreHost: r.text("storeHost"), StoreTime: r.int64("storeTimestamp"),
	}
	return r.err
}
