package wire

// KVTable is the body of codes 28, 103 (answer) and 219.
type KVTable struct{ Table map[string]string }

// AppendJSON appends the body.
func (d *KVTable) AppendJSON(dst []byte) []byte {
	w := jsonWriter{b: dst}
	w.open('{')
	w.textMap("table", d.Table)
	w.close('}')
	return w.b
}

// DecodeKVTable reads the body.
func DecodeKVTable(b []byte) (KVTable, error) {
	r := jsonReader{b: b}
	d := KVTable{Table: map[string]string{}}
	r.object(func(k jsonKey) {
		if string(k.text) == "table" {
			r.object(func(k jsonKey) {
				name := string(k.text)
				d.Table[name] = r.text()
			})
		}
	})
	return d, r.finish("table")
}

// TopicList is the body of codes 206, 224, 304, 305, 311 to 313 and 343.
type TopicList struct {
	Topics     []string
	BrokerAddr string // of some broker, only 304 and 343
}

// AppendJSON appends the body.
func (d *TopicList) AppendJSON(dst []byte) []byte {
	w := jsonWriter{b: dst}
	w.open('{')
	w.optText("brokerAddr", d.BrokerAddr)
	w.texts("topicList", d.Topics)
	w.close('}')
	return w.b
}

// DecodeTopicList reads the body.
func DecodeTopicList(b []byte) (TopicList, error) {
	r := jsonReader{b: b}
	var d TopicList
	r.object(func(k jsonKey) {
		switch string(k.text) {
		case "brokerAddr":
			d.BrokerAddr = r.text()
		case "topicList":
			d.Topics = r.texts()
		}
	})
	return d, r.finish("topic list")
}

// ConsumerList is the body of GET_CONSUMER_LIST_BY_GROUP (38).
type ConsumerList struct{ IDs []string } // client ids

// AppendJSON appends the body.
func (d *ConsumerList) AppendJSON(dst []byte) []byte {
	return appendTextList(dst, "consumerIdList", d.IDs)
}

// DecodeConsumerList reads the body.
func DecodeConsumerList(b []byte) (ConsumerList, error) {
	ids, err := decodeTextList(b, "consumerIdList")
	return ConsumerList{ids}, err
}

// GroupList is the body of QUERY_TOPIC_CONSUME_BY_WHO (300).
type GroupList struct{ Groups []string }

// AppendJSON appends the body.
func (d *GroupList) AppendJSON(dst []byte) []byte { return appendTextList(dst, "groupList", d.Groups) }

// DecodeGroupList reads the body.
func DecodeGroupList(b []byte) (GroupList, error) {
	groups, err := decodeTextList(b, "groupList")
	return GroupList{groups}, err
}

func appendTextList(dst []byte, name string, list []string) []byte {
	w := jsonWriter{b: dst}
	w.open('{')
	w.texts(name, list)
	w.close('}')
	return w.b
}

func decodeTextList(b []byte, name string) (list []string, err error) {
	r := jsonReader{b: b}
	r.object(func(k jsonKey) {
		if string(k.text) == name {
			list = r.texts()
		}
	})
	return list, r.finish(name)
}
