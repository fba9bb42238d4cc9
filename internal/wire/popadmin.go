package wire

// PeekRequest is the header of PEEK_MESSAGE (200052).
type PeekRequest struct {
	Group   string
	Topic   string
	QueueID int32 // -1: any
	MaxMsgs int32
}

// EncodeExt writes the fields.
func (h *PeekRequest) EncodeExt(e *Encoder) {
	e.Text("consumerGroup", h.Group)
	e.Text("topic", h.Topic)
	e.Int("queueId", int64(h.QueueID))
	e.Int("maxMsgNums", int64(h.MaxMsgs))
}

// DecodeExt reads the fields.
func (h *PeekRequest) DecodeExt(f *Frame) error {
	r := fieldReader{f: f}
	*h = PeekRequest{Group: r.text("consumerGroup"), Topic: r.text("topic"), QueueID: r.int32("queueId"), MaxMsgs: r.int32("maxMsgNums")}
	return r.err
}

// PollingInfoRequest is the header of POLLING_INFO (200055).
type PollingInfoRequest struct {
	Group   string
	Topic   string
	QueueID int32
}

// EncodeExt writes the fields.
func (h *PollingInfoRequest) EncodeExt(e *Encoder) {
	e.Text("consumerGroup", h.Group)
	e.Text("topic", h.Topic)
	e.Int("queueId", int64(h.QueueID))
}

// DecodeExt reads the fields.
func (h *PollingInfoRequest) DecodeExt(f *Frame) error {
	r := fieldReader{f: f}
	*h = PollingInfoRequest{Group: r.text("consumerGroup"), Topic: r.text("topic"), QueueID: r.int32("queueId")}
	return r.err
}

// PollingInfoResponse answers 200055: how many requests wait.
type PollingInfoResponse struct{ Polling int32 }

// EncodeExt writes the field.
func (h *PollingInfoResponse) EncodeExt(e *Encoder) { e.Int("pollingNum", int64(h.Polling)) }

// DecodeExt reads the field.
func (h *PollingInfoResponse) DecodeExt(f *Frame) error {
	r := fieldReader{f: f}
	h.Polling = r.int32("pollingNum")
	return r.err
}
