package wire

// TopicRequest is the header of the codes that ask about one topic: 202, 215,
// 217, 300, 351.
type TopicRequest struct{ Topic string }

// EncodeExt writes the field.
func (h *TopicRequest) EncodeExt(e *Encoder) { e.Text("topic", h.Topic) }

// DecodeExt reads the field.
func (h *TopicRequest) DecodeExt(f *Frame) error {
	r := fieldReader{f: f}
	h.Topic = r.text("topic")
	return r.err
}

// Values of TopicConfig.FilterType.
const (
	FilterSingleTag = "SINGLE_TAG"
	FilterMultiTag  = "MULTI_TAG"
)

// CreateTopicRequest is the header of UPDATE_AND_CREATE_TOPIC (17).
type CreateTopicRequest struct {
	Topic        string
	DefaultTopic string
	ReadQueues   int32
	WriteQueues  int32
	Perm         int32  // Perm... bits
	FilterType   string // FilterSingleTag or FilterMultiTag
	SysFlag      int32  // of the topic
	Order        bool
	Attributes   string // 5.x: +key=value,-key
}

// EncodeExt writes the fields.
func (h *CreateTopicRequest) EncodeExt(e *Encoder) {
	e.Text("topic", h.Topic)
	e.Text("defaultTopic", h.DefaultTopic)
	e.Int("readQueueNums", int64(h.ReadQueues))
	e.Int("writeQueueNums", int64(h.WriteQueues))
	e.Int("perm", int64(h.Perm))
	e.Text("topicFilterType", h.FilterType)
	e.Int("topicSysFlag", int64(h.SysFlag))
	e.Bool("order", h.Order)
	optText(e, "attributes", h.Attributes)
}

// DecodeExt reads the fields. The filter type must be one of the two.
func (h *CreateTopicRequest) DecodeExt(f *Frame) error {
	r := fieldReader{f: f}
	*h = CreateTopicRequest{
		Topic: r.text("topic"), DefaultTopic: r.text("defaultTopic"), ReadQueues: r.int32("readQueueNums"),
		WriteQueues: r.int32("writeQueueNums"), Perm: r.int32("perm"), FilterType: r.text("topicFilterType"),
		SysFlag: r.optInt32("topicSysFlag"), Order: f.Bool("order"), Attributes: f.Text("attributes"),
	}
	if r.err == nil && h.FilterType != FilterSingleTag && h.FilterType != FilterMultiTag {
		return &FieldError{"topicFilterType", "must be SINGLE_TAG or MULTI_TAG"}
	}
	return r.err
}

// ConsumeStatsRequest is the header of GET_CONSUME_STATS (208).
type ConsumeStatsRequest struct {
	Group     string
	Topic     string // "": all of the group
	TopicList string // 5.x: several, ; between
}

// EncodeExt writes the fields.
func (h *ConsumeStatsRequest) EncodeExt(e *Encoder) {
	e.Text("consumerGroup", h.Group)
	optText(e, "topic", h.Topic)
	optText(e, "topicList", h.TopicList)
}

// DecodeExt reads the fields.
func (h *ConsumeStatsRequest) DecodeExt(f *Frame) error {
	r := fieldReader{f: f}
	*h = ConsumeStatsRequest{Group: r.text("consumerGroup"), Topic: f.Text("topic"), TopicList: f.Text("topicList")}
	return r.err
}

// TimeSpanRequest is the header of QUERY_CONSUME_TIME_SPAN (303) and of
// QUERY_SUBSCRIPTION_BY_CONSUMER (345).
type TimeSpanRequest struct {
	Topic string
	Group string
}

// EncodeExt writes the fields.
func (h *TimeSpanRequest) EncodeExt(e *Encoder) {
	e.Text("topic", h.Topic)
	e.Text("group", h.Group)
}

// DecodeExt reads the fields.
func (h *TimeSpanRequest) DecodeExt(f *Frame) error {
	r := fieldReader{f: f}
	*h = TimeSpanRequest{Topic: r.text("topic"), Group: r.text("group")}
	return r.err
}

// ProducerGroupRequest is the header of GET_PRODUCER_CONNECTION_LIST (204).
type ProducerGroupRequest struct{ Group string }

// EncodeExt writes the field.
func (h *ProducerGroupRequest) EncodeExt(e *Encoder) { e.Text("producerGroup", h.Group) }

// DecodeExt reads the field.
func (h *ProducerGroupRequest) DecodeExt(f *Frame) error {
	r := fieldReader{f: f}
	h.Group = r.text("producerGroup")
	return r.err
}

// DeleteGroupRequest is the header of DELETE_SUBSCRIPTIONGROUP (207).
type DeleteGroupRequest struct {
	Group       string
	CleanOffset bool
}

// EncodeExt writes the fields, the last one under the names of 5.x and of 4.9.
func (h *DeleteGroupRequest) EncodeExt(e *Encoder) {
	e.Text("groupName", h.Group)
	e.Bool("cleanOffset", h.CleanOffset)
	e.Bool("removeOffset", h.CleanOffset)
}

// DecodeExt reads the fields.
func (h *DeleteGroupRequest) DecodeExt(f *Frame) error {
	r := fieldReader{f: f}
	*h = DeleteGroupRequest{Group: r.text("groupName"), CleanOffset: f.Bool("cleanOffset") || f.Bool("removeOffset")}
	return r.err
}

// SubscriptionGroupRequest is the header of GET_SUBSCRIPTIONGROUP_CONFIG (352)
// and QUERY_TOPICS_BY_CONSUMER (343).
type SubscriptionGroupRequest struct{ Group string }

// EncodeExt writes the field.
func (h *SubscriptionGroupRequest) EncodeExt(e *Encoder) { e.Text("group", h.Group) }

// DecodeExt reads the field.
func (h *SubscriptionGroupRequest) DecodeExt(f *Frame) error {
	r := fieldReader{f: f}
	h.Group = r.text("group")
	return r.err
}

// BrokerConfigResponse answers GET_BROKER_CONFIG (26); the settings are the body.
type BrokerConfigResponse struct{ Version string } // JSON of a DataVersion

// EncodeExt writes the field.
func (h *BrokerConfigResponse) EncodeExt(e *Encoder) { e.Text("version", h.Version) }

// DecodeExt reads the field.
func (h *BrokerConfigResponse) DecodeExt(f *Frame) error {
	r := fieldReader{f: f}
	h.Version = r.text("version")
	return r.err
}
