package wire

// RouteRequest is the header of GET_ROUTEINFO_BY_TOPIC (105).
type RouteRequest struct {
	Topic            string
	StandardJSONOnly bool // wants quoted keys, whatever its version
}

// EncodeExt writes the fields.
func (h *RouteRequest) EncodeExt(e *Encoder) {
	e.Text("topic", h.Topic)
	if h.StandardJSONOnly {
		e.Bool("acceptStandardJsonOnly", true)
	}
}

// DecodeExt reads the fields.
func (h *RouteRequest) DecodeExt(f *Frame) error {
	r := fieldReader{f: f}
	*h = RouteRequest{Topic: r.text("topic"), StandardJSONOnly: f.Bool("acceptStandardJsonOnly")}
	return r.err
}

// RegisterBrokerRequest is the header of REGISTER_BROKER (103). The body is a
// [RegisterBrokerBody].
type RegisterBrokerRequest struct {
	BrokerName             string
	BrokerAddr             string // ip:port
	ClusterName            string
	HAServerAddr           string
	BrokerID               int64 // 0: master
	HeartbeatTimeoutMillis int64 // 5.x; 0: absent, the name server's default counts
	EnableActingMaster     *bool // 5.x; nil: absent
	Compressed             bool
	BodyCRC32              int32 // of the body as sent, 31 bits; 0: not to be checked
	ZoneName               string
}

// EncodeExt writes the fields.
func (h *RegisterBrokerRequest) EncodeExt(e *Encoder) {
	e.Text("brokerName", h.BrokerName)
	e.Text("brokerAddr", h.BrokerAddr)
	e.Text("clusterName", h.ClusterName)
	e.Text("haServerAddr", h.HAServerAddr)
	e.Int("brokerId", h.BrokerID)
	if h.HeartbeatTimeoutMillis != 0 {
		e.Int("heartbeatTimeoutMillis", h.HeartbeatTimeoutMillis)
	}
	if h.EnableActingMaster != nil {
		e.Bool("enableActingMaster", *h.EnableActingMaster)
	}
	e.Bool("compressed", h.Compressed)
	e.Int("bodyCrc32", int64(h.BodyCRC32))
	optText(e, "__ZONE_NAME", h.ZoneName)
}

// DecodeExt reads the fields.
func (h *RegisterBrokerRequest) DecodeExt(f *Frame) error {
	r := fieldReader{f: f}
	*h = RegisterBrokerRequest{
		BrokerName: r.text("brokerName"), BrokerAddr: r.text("brokerAddr"), ClusterName: r.text("clusterName"),
		HAServerAddr: r.text("haServerAddr"), BrokerID: r.int64("brokerId"),
		HeartbeatTimeoutMillis: r.optInt64("heartbeatTimeoutMillis"), Compressed: f.Bool("compressed"),
		BodyCRC32: r.optInt32("bodyCrc32"), ZoneName: f.Text("__ZONE_NAME"),
	}
	if r.has("enableActingMaster") {
		acting := f.Bool("enableActingMaster")
		h.EnableActingMaster = &acting
	}
	return r.err
}

// RegisterBrokerResponse answers code 103; both are empty unless a slave asked
// and its master is known. The body may be a [KVTable] of order topics.
type RegisterBrokerResponse struct {
	HAServerAddr string
	MasterAddr   string
}

// EncodeExt writes the fields that are not empty.
func (h *RegisterBrokerResponse) EncodeExt(e *Encoder) {
	optText(e, "haServerAddr", h.HAServerAddr)
	optText(e, "masterAddr", h.MasterAddr)
}

// DecodeExt reads the fields. It never fails.
func (h *RegisterBrokerResponse) DecodeExt(f *Frame) error {
	*h = RegisterBrokerResponse{HAServerAddr: f.Text("haServerAddr"), MasterAddr: f.Text("masterAddr")}
	return nil
}

// UnregisterBrokerRequest is the header of UNREGISTER_BROKER (104) and
// QUERY_DATA_VERSION (322).
type UnregisterBrokerRequest struct {
	BrokerName  string
	BrokerAddr  string
	ClusterName string
	BrokerID    int64
}

// EncodeExt writes the fields.
func (h *UnregisterBrokerRequest) EncodeExt(e *Encoder) {
	e.Text("brokerName", h.BrokerName)
	e.Text("brokerAddr", h.BrokerAddr)
	e.Text("clusterName", h.ClusterName)
	e.Int("brokerId", h.BrokerID)
}

// DecodeExt reads the fields.
func (h *UnregisterBrokerRequest) DecodeExt(f *Frame) error {
	r := fieldReader{f: f}
	*h = UnregisterBrokerRequest{
		BrokerName: r.text("brokerName"), BrokerAddr: r.text("brokerAddr"), ClusterName: r.text("clusterName"), BrokerID: r.int64("brokerId"),
	}
	return r.err
}

// DataVersionResponse answers code 322.
type DataVersionResponse struct{ Changed bool }

// EncodeExt writes the field.
func (h *DataVersionResponse) EncodeExt(e *Encoder) { e.Bool("changed", h.Changed) }

// DecodeExt reads the field.
func (h *DataVersionResponse) DecodeExt(f *Frame) error {
	r := fieldReader{f: f}
	h.Changed = ParseBool([]byte(r.text("changed")))
	return r.err
}

// BrokerHeartbeatRequest is the header of BROKER_HEARTBEAT (904).
type BrokerHeartbeatRequest struct {
	ClusterName            string
	BrokerAddr             string
	BrokerName             string
	BrokerID               int64
	HeartbeatTimeoutMillis int64 // 0: absent
}

// EncodeExt writes the fields. The spelling of the last one is Apache's.
func (h *BrokerHeartbeatRequest) EncodeExt(e *Encoder) {
	e.Text("clusterName", h.ClusterName)
	e.Text("brokerAddr", h.BrokerAddr)
	e.Text("brokerName", h.BrokerName)
	e.Int("brokerId", h.BrokerID)
	if h.HeartbeatTimeoutMillis != 0 {
		e.Int("heartbeatTimeoutMills", h.HeartbeatTimeoutMillis)
	}
}

// DecodeExt reads the fields.
func (h *BrokerHeartbeatRequest) DecodeExt(f *Frame) error {
	r := fieldReader{f: f}
	*h = BrokerHeartbeatRequest{
		ClusterName: r.text("clusterName"), BrokerAddr: r.text("brokerAddr"), BrokerName: r.text("brokerName"),
		BrokerID: r.optInt64("brokerId"), HeartbeatTimeoutMillis: r.optInt64("heartbeatTimeoutMills"),
	}
	return r.err
}

// MemberGroupRequest is the header of GET_BROKER_MEMBER_GROUP (901).
type MemberGroupRequest struct {
	ClusterName string
	BrokerName  string
}

// EncodeExt writes the fields.
func (h *MemberGroupRequest) EncodeExt(e *Encoder) {
	e.Text("clusterName", h.ClusterName)
	e.Text("brokerName", h.BrokerName)
}

// DecodeExt reads the fields.
func (h *MemberGroupRequest) DecodeExt(f *Frame) error {
	r := fieldReader{f: f}
	*h = MemberGroupRequest{ClusterName: r.text("clusterName"), BrokerName: r.text("brokerName")}
	return r.err
}

// WipeWritePermRequest is the header of WIPE_WRITE_PERM_OF_BROKER (205) and
// ADD_WRITE_PERM_OF_BROKER (327).
type WipeWritePermRequest struct{ BrokerName string }

// EncodeExt writes the field.
func (h *WipeWritePermRequest) EncodeExt(e *Encoder) { e.Text("brokerName", h.BrokerName) }

// DecodeExt reads the field.
func (h *WipeWritePermRequest) DecodeExt(f *Frame) error {
	r := fieldReader{f: f}
	h.BrokerName = r.text("brokerName")
	return r.err
}

// WipeWritePermResponse answers code 205.
type WipeWritePermResponse struct{ WipeTopicCount int32 }

// EncodeExt writes the field.
func (h *WipeWritePermResponse) EncodeExt(e *Encoder) {
	e.Int("wipeTopicCount", int64(h.WipeTopicCount))
}

// DecodeExt reads the field.
func (h *WipeWritePermResponse) DecodeExt(f *Frame) error {
	r := fieldReader{f: f}
	h.WipeTopicCount = r.int32("wipeTopicCount")
	return r.err
}

// AddWritePermResponse answers code 327.
type AddWritePermResponse struct{ AddTopicCount int32 }

// EncodeExt writes the field.
func (h *AddWritePermResponse) EncodeExt(e *Encoder) { e.Int("addTopicCount", int64(h.AddTopicCount)) }

// DecodeExt reads the field.
func (h *AddWritePermResponse) DecodeExt(f *Frame) error {
	r := fieldReader{f: f}
	h.AddTopicCount = r.int32("addTopicCount")
	return r.err
}

// DeleteTopicInNamesrvRequest is the header of DELETE_TOPIC_IN_NAMESRV (216).
type DeleteTopicInNamesrvRequest struct {
	Topic       string
	ClusterName string // "": everywhere
}

// EncodeExt writes the fields.
func (h *DeleteTopicInNamesrvRequest) EncodeExt(e *Encoder) {
	e.Text("topic", h.Topic)
	optText(e, "clusterName", h.ClusterName)
}

// DecodeExt reads the fields.
func (h *DeleteTopicInNamesrvRequest) DecodeExt(f *Frame) error {
	r := fieldReader{f: f}
	*h = DeleteTopicInNamesrvRequest{Topic: r.text("topic"), ClusterName: f.Text("clusterName")}
	return r.err
}

// ClusterRequest is the header of GET_TOPICS_BY_CLUSTER (224).
type ClusterRequest struct{ Cluster string }

// EncodeExt writes the field.
func (h *ClusterRequest) EncodeExt(e *Encoder) { e.Text("cluster", h.Cluster) }

// DecodeExt reads the field.
func (h *ClusterRequest) DecodeExt(f *Frame) error {
	r := fieldReader{f: f}
	h.Cluster = r.text("cluster")
	return r.err
}

// KVRequest is the header of codes 100 (all three), 101 and 102 (without Value)
// and 219 (Namespace alone).
type KVRequest struct {
	Namespace string
	Key       string
	Value     string
}

// EncodeExt writes the namespace, and the others unless they are empty.
func (h *KVRequest) EncodeExt(e *Encoder) {
	e.Text("namespace", h.Namespace)
	optText(e, "key", h.Key)
	optText(e, "value", h.Value)
}

// DecodeExt reads the fields and requires those of the frame's code.
func (h *KVRequest) DecodeExt(f *Frame) error {
	r := fieldReader{f: f}
	*h = KVRequest{Namespace: r.text("namespace"), Key: f.Text("key"), Value: f.Text("value")}
	if f.Code != ReqGetKvlistByNamespace {
		h.Key = r.text("key")
	}
	if f.Code == ReqPutKVConfig {
		h.Value = r.text("value")
	}
	return r.err
}

// KVResponse answers code 101.
type KVResponse struct {
	Value string
	Has   bool // whether there is a value
}

// EncodeExt writes the value if there is one.
func (h *KVResponse) EncodeExt(e *Encoder) {
	if h.Has {
		e.Text("value", h.Value)
	}
}

// DecodeExt reads the field. It never fails.
func (h *KVResponse) DecodeExt(f *Frame) error {
	v, ok := f.Lookup("value")
	*h = KVResponse{Value: string(v), Has: ok}
	return nil
}
