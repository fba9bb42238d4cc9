package wire

// OffsetTable is the body of codes 220 and 222: an offset for each queue.
type OffsetTable struct{ Offsets map[MessageQueue]int64 }

// AppendJSON appends the body with queues as keys. The official Go client takes
// anything that is valid JSON for the list form, so there is no other way to
// write it.
func (d *OffsetTable) AppendJSON(dst []byte) []byte {
	w := jsonWriter{b: dst}
	w.open('{')
	w.queueOffsets("offsetTable", d.Offsets)
	w.close('}')
	return w.b
}

// AppendListJSON appends the list form, which goes to C++ clients.
func (d *OffsetTable) AppendListJSON(dst []byte) []byte {
	w := jsonWriter{b: dst}
	w.open('{')
	w.key("offsetTable")
	w.open('[')
	for _, q := range sortedQueues(d.Offsets) {
		w.item('{')
		w.text("brokerName", q.Broker)
		w.int("offset", d.Offsets[q])
		w.int("queueId", int64(q.QueueID))
		w.text("topic", q.Topic)
		w.close('}')
	}
	w.close(']')
	w.close('}')
	return w.b
}

// DecodeOffsetTable reads any of the forms that brokers send: queues as keys,
// keys that are strings of a queue's JSON, a list of queues with offsets, a list
// of pairs, also without the object around it.
func DecodeOffsetTable(b []byte) (OffsetTable, error) {
	r := jsonReader{b: b}
	d := OffsetTable{Offsets: map[MessageQueue]int64{}}
	if r.peek() == '[' {
		d.Offsets = r.queueOffsets()
		return d, r.finish("offset table")
	}
	r.object(func(k jsonKey) {
		if string(k.text) == "offsetTable" {
			d.Offsets = r.queueOffsets()
		}
	})
	return d, r.finish("offset table")
}

// ConsumerStatus is the body of codes 221 and 223.
type ConsumerStatus struct {
	Queues  map[MessageQueue]int64            // 221: the client's own
	Clients map[string]map[MessageQueue]int64 // 223: by client id
}

// AppendJSON appends the body.
func (d *ConsumerStatus) AppendJSON(dst []byte) []byte {
	w := jsonWriter{b: dst}
	w.open('{')
	w.key("consumerTable")
	w.open('{')
	for _, id := range sortedKeys(d.Clients) {
		w.textKey(id)
		w.open('{')
		for _, q := range sortedQueues(d.Clients[id]) {
			w.queueKey(q)
			w.number(d.Clients[id][q])
		}
		w.close('}')
	}
	w.close('}')
	w.queueOffsets("messageQueueTable", d.Queues)
	w.close('}')
	return w.b
}

// DecodeConsumerStatus reads the body.
func DecodeConsumerStatus(b []byte) (ConsumerStatus, error) {
	r := jsonReader{b: b}
	d := ConsumerStatus{Queues: map[MessageQueue]int64{}, Clients: map[string]map[MessageQueue]int64{}}
	r.object(func(k jsonKey) {
		switch string(k.text) {
		case "messageQueueTable":
			d.Queues = r.queueOffsets()
		case "consumerTable":
			r.object(func(k jsonKey) {
				id := string(k.text)
				d.Clients[id] = r.queueOffsets()
			})
		}
	})
	return d, r.finish("consumer status")
}

// ConsumerOffsets is the body of GET_ALL_CONSUMER_OFFSET (43), and the file
// config/consumerOffset.json of a broker.
type ConsumerOffsets struct {
	Version DataVersion                // 5.x
	Offsets map[string]map[int32]int64 // by topic@group and queue
}

// AppendJSON appends the body.
func (d *ConsumerOffsets) AppendJSON(dst []byte) []byte {
	w := jsonWriter{b: dst}
	w.open('{')
	w.key("dataVersion")
	w.dataVersion(d.Version)
	w.key("offsetTable")
	w.open('{')
	for _, name := range sortedKeys(d.Offsets) {
		w.textKey(name)
		w.open('{')
		for _, q := range sortedKeys(d.Offsets[name]) {
			w.intKey(int64(q))
			w.number(d.Offsets[name][q])
		}
		w.close('}')
	}
	w.close('}')
	w.close('}')
	return w.b
}

// DecodeConsumerOffsets reads the body.
func DecodeConsumerOffsets(b []byte) (ConsumerOffsets, error) {
	r := jsonReader{b: b}
	d := ConsumerOffsets{Offsets: map[string]map[int32]int64{}}
	r.object(func(k jsonKey) {
		switch string(k.text) {
		case "dataVersion":
			d.Version = r.dataVersion()
		case "offsetTable":
			r.object(func(k jsonKey) {
				name := string(k.text)
				m := map[int32]int64{}
				r.object(func(k jsonKey) {
					q := k.int32(&r)
					m[q] = r.int64()
				})
				d.Offsets[name] = m
			})
		}
	})
	return d, r.finish("consumer offsets")
}

// DelayOffsets is the body of GET_ALL_DELAY_OFFSET (45), and the file
// config/delayOffset.json of a broker.
type DelayOffsets struct {
	Version DataVersion     // 5.x
	Offsets map[int32]int64 // by delay level
}

// AppendJSON appends the body.
func (d *DelayOffsets) AppendJSON(dst []byte) []byte {
	w := jsonWriter{b: dst}
	w.open('{')
	w.key("dataVersion")
	w.dataVersion(d.Version)
	w.key("offsetTable")
	w.open('{')
	for _, level := range sortedKeys(d.Offsets) {
		w.intKey(int64(level))
		w.number(d.Offsets[level])
	}
	w.close('}')
	w.close('}')
	return w.b
}

// DecodeDelayOffsets reads the body.
func DecodeDelayOffsets(b []byte) (DelayOffsets, error) {
	r := jsonReader{b: b}
	d := DelayOffsets{Offsets: map[int32]int64{}}
	r.object(func(k jsonKey) {
		switch string(k.text) {
		case "dataVersion":
			d.Version = r.dataVersion()
		case "offsetTable":
			r.object(func(k jsonKey) {
				level := k.int32(&r)
				d.Offsets[level] = r.int64()
			})
		}
	})
	return d, r.finish("delay offsets")
}
