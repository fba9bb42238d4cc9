package wire

// QueryOffsetRequest is the header of QUERY_CONSUMER_OFFSET (14).
type QueryOffsetRequest struct {
	Group      string
	Topic      string
	QueueID    int32
	SetZero    bool // setZeroIfNotFound, if HasSetZero; absent means true to a broker
	HasSetZero bool
	BrokerName string
}

// EncodeExt writes the fields.
func (h *QueryOffsetRequest) EncodeExt(e *Encoder) {
	e.Text("consumerGroup", h.Group)
	e.Text("topic", h.Topic)
	e.Int("queueId", int64(h.QueueID))
	if h.HasSetZero {
		e.Bool("setZeroIfNotFound", h.SetZero)
	}
	optText(e, "bname", h.BrokerName)
}

// DecodeExt reads the fields.
func (h *QueryOffsetRequest) DecodeExt(f *Frame) error {
	r := fieldReader{f: f}
	*h = QueryOffsetRequest{
		Group: r.text("consumerGroup"), Topic: r.text("topic"), QueueID: r.int32("queueId"),
		SetZero: f.Bool("setZeroIfNotFound"), HasSetZero: r.has("setZeroIfNotFound"), BrokerName: f.Text("bname"),
	}
	return r.err
}

// UpdateOffsetRequest is the header of UPDATE_CONSUMER_OFFSET (15).
type UpdateOffsetRequest struct {
	Group      string
	Topic      string
	QueueID    int32
	Offset     int64 // the next one to consume
	BrokerName string
}

// EncodeExt writes the fields.
func (h *UpdateOffsetRequest) EncodeExt(e *Encoder) {
	e.Text("consumerGroup", h.Group)
	e.Text("topic", h.Topic)
	e.Int("queueId", int64(h.QueueID))
	e.Int("commitOffset", h.Offset)
	optText(e, "bname", h.BrokerName)
}

// DecodeExt reads the fields.
func (h *UpdateOffsetRequest) DecodeExt(f *Frame) error {
	r := fieldReader{f: f}
	*h = UpdateOffsetRequest{
		Group: r.text("consumerGroup"), Topic: r.text("topic"), QueueID: r.int32("queueId"),
		Offset: r.int64("commitOffset"), BrokerName: f.Text("bname"),
	}
	return r.err
}

// Boundaries of SearchOffsetRequest: which of several messages of one time, and
// which neighbour of a time between two messages.
const (
	BoundaryLower = "lower" // the first, the later; the default
	BoundaryUpper = "upper" // the last, the earlier
)

// SearchOffsetRequest is the header of SEARCH_OFFSET_BY_TIMESTAMP (29).
type SearchOffsetRequest struct {
	Topic      string
	QueueID    int32
	Timestamp  int64  // ms since 1970
	Boundary   string // Boundary..., "" for lower; 5.x
	BrokerName string
}

// EncodeExt writes the fields.
func (h *SearchOffsetRequest) EncodeExt(e *Encoder) {
	e.Text("topic", h.Topic)
	e.Int("queueId", int64(h.QueueID))
	e.Int("timestamp", h.Timestamp)
	optText(e, "boundaryType", h.Boundary)
	optText(e, "bname", h.BrokerName)
}

// DecodeExt reads the fields.
func (h *SearchOffsetRequest) DecodeExt(f *Frame) error {
	r := fieldReader{f: f}
	*h = SearchOffsetRequest{
		Topic: r.text("topic"), QueueID: r.int32("queueId"), Timestamp: r.int64("timestamp"),
		Boundary: f.Text("boundaryType"), BrokerName: f.Text("bname"),
	}
	return r.err
}

// QueueRequest is the header of GET_MAX_OFFSET (30), GET_MIN_OFFSET (31) and
// GET_EARLIEST_MSG_STORETIME (32).
type QueueRequest struct {
	Topic      string
	QueueID    int32
	BrokerName string
}

// EncodeExt writes the fields.
func (h *QueueRequest) EncodeExt(e *Encoder) {
	e.Text("topic", h.Topic)
	e.Int("queueId", int64(h.QueueID))
	optText(e, "bname", h.BrokerName)
}

// DecodeExt reads the fields.
func (h *QueueRequest) DecodeExt(f *Frame) error {
	r := fieldReader{f: f}
	*h = QueueRequest{Topic: r.text("topic"), QueueID: r.int32("queueId"), BrokerName: f.Text("bname")}
	return r.err
}

// OffsetResponse answers codes 14, 29, 30 and 31.
type OffsetResponse struct{ Offset int64 }

// EncodeExt writes the field.
func (h *OffsetResponse) EncodeExt(e *Encoder) { e.Int("offset", h.Offset) }

// DecodeExt reads the field.
func (h *OffsetResponse) DecodeExt(f *Frame) error {
	r := fieldReader{f: f}
	h.Offset = r.int64("offset")
	return r.err
}

// TimestampResponse answers code 32.
type TimestampResponse struct{ Timestamp int64 } // ms since 1970, -1 for an empty queue

// EncodeExt writes the field.
func (h *TimestampResponse) EncodeExt(e *Encoder) { e.Int("timestamp", h.Timestamp) }

// DecodeExt reads the field.
func (h *TimestampResponse) DecodeExt(f *Frame) error {
	r := fieldReader{f: f}
	h.Timestamp = r.int64("timestamp")
	return r.err
}

// ViewMessageRequest is the header of VIEW_MESSAGE_BY_ID (33).
type ViewMessageRequest struct {
	Offset int64  // in the commit log
	Topic  string // 5.x
}

// EncodeExt writes the fields.
func (h *ViewMessageRequest) EncodeExt(e *Encoder) {
	e.Int("offset", h.Offset)
	optText(e, "topic", h.Topic)
}

// DecodeExt reads the fields.
func (h *ViewMessageRequest) DecodeExt(f *Frame) error {
	r := fieldReader{f: f}
	*h = ViewMessageRequest{Offset: r.int64("offset"), Topic: f.Text("topic")}
	return r.err
}

// QueryMessageRequest is the header of QUERY_MESSAGE (12).
type QueryMessageRequest struct {
	Topic     string
	Key       string
	MaxNum    int32
	Begin     int64 // ms since 1970
	End       int64
	UniqueKey bool // Key is a message id, not a business key
}

// uniqueKeyQuery is left out of what 4.9 brokers verify of a signature.
const uniqueKeyQuery = "_UNIQUE_KEY_QUERY"

// EncodeExt writes the fields.
func (h *QueryMessageRequest) EncodeExt(e *Encoder) {
	e.Text("topic", h.Topic)
	e.Text("key", h.Key)
	e.Int("maxNum", int64(h.MaxNum))
	e.Int("beginTimestamp", h.Begin)
	e.Int("endTimestamp", h.End)
	e.Bool(uniqueKeyQuery, h.UniqueKey)
}

// DecodeExt reads the fields.
func (h *QueryMessageRequest) DecodeExt(f *Frame) error {
	r := fieldReader{f: f}
	*h = QueryMessageRequest{
		Topic: r.text("topic"), Key: r.text("key"), MaxNum: r.int32("maxNum"),
		Begin: r.int64("beginTimestamp"), End: r.int64("endTimestamp"), UniqueKey: f.Bool(uniqueKeyQuery),
	}
	return r.err
}

// QueryMessageResponse answers code 12.
type QueryMessageResponse struct {
	IndexTime   int64 // ms since 1970, of the newest indexed message
	IndexOffset int64 // in the commit log
}

// EncodeExt writes the fields.
func (h *QueryMessageResponse) EncodeExt(e *Encoder) {
	e.Int("indexLastUpdateTimestamp", h.IndexTime)
	e.Int("indexLastUpdatePhyoffset", h.IndexOffset)
}

// DecodeExt reads the fields.
func (h *QueryMessageResponse) DecodeExt(f *Frame) error {
	r := fieldReader{f: f}
	*h = QueryMessageResponse{IndexTime: r.int64("indexLastUpdateTimestamp"), IndexOffset: r.int64("indexLastUpdatePhyoffset")}
	return r.err
}
