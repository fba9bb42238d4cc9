package wire

// TopicOffset is how far a queue reaches.
type TopicOffset struct {
	MinOffset  int64
	MaxOffset  int64 // of the next message
	LastUpdate int64 // ms since 1970, when the last message was stored; 0: never
}

// TopicStats is the body of GET_TOPIC_STATS_INFO (202).
type TopicStats struct {
	Offsets map[MessageQueue]TopicOffset
	PutTPS  float64 // 5.x
}

// AppendJSON appends the body.
func (d *TopicStats) AppendJSON(dst []byte) []byte {
	w := jsonWriter{b: dst}
	w.open('{')
	w.key("offsetTable")
	w.open('{')
	for _, q := range sortedQueues(d.Offsets) {
		w.queueKey(q)
		o := d.Offsets[q]
		w.open('{')
		w.int("lastUpdateTimestamp", o.LastUpdate)
		w.int("maxOffset", o.MaxOffset)
		w.int("minOffset", o.MinOffset)
		w.close('}')
	}
	w.close('}')
	w.float("topicPutTps", d.PutTPS)
	w.close('}')
	return w.b
}

// DecodeTopicStats reads the body.
func DecodeTopicStats(b []byte) (TopicStats, error) {
	r := jsonReader{b: b}
	d := TopicStats{Offsets: map[MessageQueue]TopicOffset{}}
	r.object(func(k jsonKey) {
		switch string(k.text) {
		case "topicPutTps":
			d.PutTPS = r.float()
		case "offsetTable":
			r.object(func(k jsonKey) {
				q, ok := k.queue(&r)
				var o TopicOffset
				r.object(func(k jsonKey) {
					switch string(k.text) {
					case "minOffset":
						o.MinOffset = r.int64()
					case "maxOffset":
						o.MaxOffset = r.int64()
					case "lastUpdateTimestamp":
						o.LastUpdate = r.int64()
					}
				})
				if ok {
					d.Offsets[q] = o
				}
			})
		}
	})
	return d, r.finish("topic stats")
}

// OffsetWrapper is how far a group got in a queue.
type OffsetWrapper struct {
	BrokerOffset   int64 // of the next message
	ConsumerOffset int64 // of the next one to consume
	PullOffset     int64 // 5.x
	LastTimestamp  int64 // ms since 1970, store time of the last consumed message
}

// ConsumeStats is the body of GET_CONSUME_STATS (208).
type ConsumeStats struct {
	TPS     float64
	Offsets map[MessageQueue]OffsetWrapper
}

// AppendJSON appends the body.
func (d *ConsumeStats) AppendJSON(dst []byte) []byte {
	w := jsonWriter{b: dst}
	w.open('{')
	w.float("consumeTps", d.TPS)
	w.key("offsetTable")
	w.open('{')
	for _, q := range sortedQueues(d.Offsets) {
		w.queueKey(q)
		o := d.Offsets[q]
		w.open('{')
		w.int("brokerOffset", o.BrokerOffset)
		w.int("consumerOffset", o.ConsumerOffset)
		w.int("lastTimestamp", o.LastTimestamp)
		w.int("pullOffset", o.PullOffset)
		w.close('}')
	}
	w.close('}')
	w.close('}')
	return w.b
}

// DecodeConsumeStats reads the body.
func DecodeConsumeStats(b []byte) (ConsumeStats, error) {
	r := jsonReader{b: b}
	d := ConsumeStats{Offsets: map[MessageQueue]OffsetWrapper{}}
	r.object(func(k jsonKey) {
		switch string(k.text) {
		case "consumeTps":
			d.TPS = r.float()
		case "offsetTable":
			r.object(func(k jsonKey) {
				if q, ok := k.queue(&r); ok {
					d.Offsets[q] = r.offsetWrapper()
				}
			})
		}
	})
	return d, r.finish("consume stats")
}

func (r *jsonReader) offsetWrapper() (o OffsetWrapper) {
	r.object(func(k jsonKey) {
		switch string(k.text) {
		case "brokerOffset":
			o.BrokerOffset = r.int64()
		case "consumerOffset":
			o.ConsumerOffset = r.int64()
		case "pullOffset":
			o.PullOffset = r.int64()
		case "lastTimestamp":
			o.LastTimestamp = r.int64()
		}
	})
	return o
}

// Connection is one client of a group.
type Connection struct {
	ClientID   string
	ClientAddr string // ip:port
	Language   string
	Version    int32
}

// ConsumerConnection is the body of GET_CONSUMER_CONNECTION_LIST (203).
type ConsumerConnection struct {
	Connections   []Connection
	Subscriptions map[string]Subscription // by topic
	ConsumeType   string
	Model         string
	From          string
}

// AppendJSON appends the body.
func (d *ConsumerConnection) AppendJSON(dst []byte) []byte {
	w := jsonWriter{b: dst}
	w.open('{')
	w.connections(d.Connections)
	w.optText("consumeFromWhere", d.From)
	w.optText("consumeType", d.ConsumeType)
	w.optText("messageModel", d.Model)
	w.key("subscriptionTable")
	w.open('{')
	for _, topic := range sortedKeys(d.Subscriptions) {
		w.textKey(topic)
		s := d.Subscriptions[topic]
		w.subscription(&s)
	}
	w.close('}')
	w.close('}')
	return w.b
}

func (w *jsonWriter) connections(list []Connection) {
	w.key("connectionSet")
	w.open('[')
	for _, c := range list {
		w.item('{')
		w.text("clientAddr", c.ClientAddr)
		w.text("clientId", c.ClientID)
		w.optText("language", c.Language)
		w.int("version", int64(c.Version))
		w.close('}')
	}
	w.close(']')
}

// DecodeConsumerConnection reads the body.
func DecodeConsumerConnection(b []byte) (ConsumerConnection, error) {
	r := jsonReader{b: b}
	d := ConsumerConnection{Subscriptions: map[string]Subscription{}}
	r.object(func(k jsonKey) {
		switch string(k.text) {
		case "connectionSet":
			d.Connections = r.connections()
		case "subscriptionTable":
			r.object(func(k jsonKey) {
				topic := string(k.text)
				d.Subscriptions[topic] = r.subscription()
			})
		case "consumeType":
			d.ConsumeType = r.text()
		case "messageModel":
			d.Model = r.text()
		case "consumeFromWhere":
			d.From = r.text()
		}
	})
	return d, r.finish("consumer connections")
}

func (r *jsonReader) connections() (list []Connection) {
	r.array(func() {
		var c Connection
		r.object(func(k jsonKey) {
			switch string(k.text) {
			case "clientAddr":
				c.ClientAddr = r.text()
			case "clientId":
				c.ClientID = r.text()
			case "language":
				c.Language = r.text()
			case "version":
				c.Version = r.int32()
			}
		})
		list = append(list, c)
	})
	return list
}

// ProducerConnection is the body of GET_PRODUCER_CONNECTION_LIST (204).
type ProducerConnection struct{ Connections []Connection }

// AppendJSON appends the body.
func (d *ProducerConnection) AppendJSON(dst []byte) []byte {
	w := jsonWriter{b: dst}
	w.open('{')
	w.connections(d.Connections)
	w.close('}')
	return w.b
}

// DecodeProducerConnection reads the body.
func DecodeProducerConnection(b []byte) (ProducerConnection, error) {
	r := jsonReader{b: b}
	var d ProducerConnection
	r.object(func(k jsonKey) {
		if string(k.text) == "connectionSet" {
			d.Connections = r.connections()
		}
	})
	return d, r.finish("producer connections")
}
