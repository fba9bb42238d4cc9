package wire

// TopicConfig is a topic as a broker keeps it.
type TopicConfig struct {
	Name        string
	ReadQueues  int32
	WriteQueues int32
	Perm        int32  // Perm... bits
	FilterType  string // FilterSingleTag or FilterMultiTag
	SysFlag     int32  // TopicUnit, TopicUnitSub
	Order       bool
	Attributes  map[string]string // 5.x
}

// NewTopicConfig is a topic with Apache's defaults: 16 queues, to be read and
// written.
func NewTopicConfig(name string) TopicConfig {
	return TopicConfig{Name: name, ReadQueues: 16, WriteQueues: 16, Perm: PermRead | PermWrite, FilterType: FilterSingleTag}
}

// AppendJSON appends the body of GET_TOPIC_CONFIG (351).
func (d *TopicConfig) AppendJSON(dst []byte) []byte {
	w := jsonWriter{b: dst}
	w.topicConfig(d)
	return w.b
}

func (w *jsonWriter) topicConfig(d *TopicConfig) {
	w.open('{')
	w.textMap("attributes", d.Attributes)
	w.bool("order", d.Order)
	w.int("perm", int64(d.Perm))
	w.int("readQueueNums", int64(d.ReadQueues))
	w.text("topicFilterType", orSingleTag(d.FilterType))
	w.text("topicName", d.Name)
	w.int("topicSysFlag", int64(d.SysFlag))
	w.int("writeQueueNums", int64(d.WriteQueues))
	w.close('}')
}

func orSingleTag(filterType string) string {
	if filterType == "" {
		return FilterSingleTag
	}
	return filterType
}

// DecodeTopicConfig reads the body. What is absent has Apache's default.
func DecodeTopicConfig(b []byte) (TopicConfig, error) {
	r := jsonReader{b: b}
	d := r.topicConfig()
	return d, r.finish("topic config")
}

func (r *jsonReader) topicConfig() TopicConfig {
	d := NewTopicConfig("")
	r.object(func(k jsonKey) {
		switch string(k.text) {
		case "topicName":
			d.Name = r.text()
		case "readQueueNums":
			d.ReadQueues = r.int32()
		case "writeQueueNums":
			d.WriteQueues = r.int32()
		case "perm":
			d.Perm = r.int32()
		case "topicFilterType":
			d.FilterType = orSingleTag(r.text())
		case "topicSysFlag":
			d.SysFlag = r.int32()
		case "order":
			d.Order = r.bool()
		case "attributes":
			d.Attributes = r.textMap()
		}
	})
	return d
}

// DataVersion says which of two states of a broker's tables is newer. It is
// comparable: equal versions, equal tables.
type DataVersion struct {
	StateVersion int64
	Timestamp    int64 // ms since 1970
	Counter      int64
}

// Next is the version after a change at time now, in ms.
func (v DataVersion) Next(now int64) DataVersion {
	return DataVersion{StateVersion: v.StateVersion, Timestamp: now, Counter: v.Counter + 1}
}

// AppendJSON appends the body of QUERY_DATA_VERSION (322).
func (v DataVersion) AppendJSON(dst []byte) []byte {
	w := jsonWriter{b: dst}
	w.dataVersion(v)
	return w.b
}

func (w *jsonWriter) dataVersion(v DataVersion) {
	w.open('{')
	w.int("counter", v.Counter)
	w.int("stateVersion", v.StateVersion)
	w.int("timestamp", v.Timestamp)
	w.close('}')
}

// DecodeDataVersion reads the body.
func DecodeDataVersion(b []byte) (DataVersion, error) {
	r := jsonReader{b: b}
	v := r.dataVersion()
	return v, r.finish("data version")
}

func (r *jsonReader) dataVersion() (v DataVersion) {
	r.object(func(k jsonKey) {
		switch string(k.text) {
		case "stateVersion":
			v.StateVersion = r.int64()
		case "timestamp":
			v.Timestamp = r.int64()
		case "counter":
			v.Counter = r.int64()
		}
	})
	return v
}

// TopicConfigs is the body of GET_ALL_TOPIC_CONFIG (21), and the file
// config/topics.json of a broker.
type TopicConfigs struct {
	Version        DataVersion
	MappingVersion DataVersion // of static topics, which are not supported; 5.x
	Topics         map[string]TopicConfig
}

// AppendJSON appends the body.
func (d *TopicConfigs) AppendJSON(dst []byte) []byte {
	w := jsonWriter{b: dst}
	w.topicConfigs(d)
	return w.b
}

func (w *jsonWriter) topicConfigs(d *TopicConfigs) {
	w.open('{')
	w.key("dataVersion")
	w.dataVersion(d.Version)
	w.key("mappingDataVersion")
	w.dataVersion(d.MappingVersion)
	w.key("topicConfigTable")
	w.open('{')
	for _, name := range sortedKeys(d.Topics) {
		w.textKey(name)
		t := d.Topics[name]
		w.topicConfig(&t)
	}
	w.close('}')
	w.empty("topicQueueMappingDetailMap")
	w.empty("topicQueueMappingInfoMap")
	w.close('}')
}

// DecodeTopicConfigs reads the body.
func DecodeTopicConfigs(b []byte) (TopicConfigs, error) {
	r := jsonReader{b: b}
	d := r.topicConfigs()
	return d, r.finish("topic configs")
}

func (r *jsonReader) topicConfigs() TopicConfigs {
	d := TopicConfigs{Topics: map[string]TopicConfig{}}
	r.object(func(k jsonKey) {
		switch string(k.text) {
		case "dataVersion":
			d.Version = r.dataVersion()
		case "mappingDataVersion":
			d.MappingVersion = r.dataVersion()
		case "topicConfigTable":
			r.object(func(k jsonKey) {
				name := string(k.text)
				t := r.topicConfig()
				if t.Name == "" {
					t.Name = name
				}
				d.Topics[name] = t
			})
		}
	})
	return d
}

// TopicConfigList is the body of UPDATE_AND_CREATE_TOPIC_LIST (18).
type TopicConfigList struct{ Topics []TopicConfig }

// AppendJSON appends the body.
func (d *TopicConfigList) AppendJSON(dst []byte) []byte {
	w := jsonWriter{b: dst}
	w.open('{')
	w.key("topicConfigList")
	w.open('[')
	for i := range d.Topics {
		w.sep()
		w.topicConfig(&d.Topics[i])
	}
	w.close(']')
	w.close('}')
	return w.b
}

// DecodeTopicConfigList reads the body.
func DecodeTopicConfigList(b []byte) (TopicConfigList, error) {
	r := jsonReader{b: b}
	var d TopicConfigList
	r.object(func(k jsonKey) {
		if string(k.text) == "topicConfigList" {
			r.array(func() { d.Topics = append(d.Topics, r.topicConfig()) })
		}
	})
	return d, r.finish("topic config list")
}
