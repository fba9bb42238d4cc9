package wire

// TimerMetrics is the body of GET_TIMER_METRICS (61), and the file
// config/timermetrics of a broker.
type TimerMetrics struct {
	Version DataVersion
	Topics  map[string]TimerMetric
}

// TimerMetric is how many messages a topic will get from the timers.
type TimerMetric struct {
	Count     int64
	Timestamp int64 // of the last change, ms since 1970
}

// AppendJSON appends the body.
func (d *TimerMetrics) AppendJSON(dst []byte) []byte {
	w := jsonWriter{b: dst}
	w.open('{')
	w.key("dataVersion")
	w.dataVersion(d.Version)
	w.key("timingCount")
	w.open('{')
	for _, topic := range sortedKeys(d.Topics) {
		m := d.Topics[topic]
		w.textKey(topic)
		w.open('{')
		w.key("count")
		w.number(m.Count)
		w.key("timeStamp")
		w.number(m.Timestamp)
		w.close('}')
	}
	w.close('}')
	w.close('}')
	return w.b
}

// DecodeTimerMetrics reads the body.
func DecodeTimerMetrics(b []byte) (TimerMetrics, error) {
	r := jsonReader{b: b}
	d := TimerMetrics{Topics: map[string]TimerMetric{}}
	r.object(func(k jsonKey) {
		switch string(k.text) {
		case "dataVersion":
			d.Version = r.dataVersion()
		case "timingCount":
			r.object(func(k jsonKey) {
				topic, m := string(k.text), TimerMetric{}
				r.object(func(k jsonKey) {
					switch string(k.text) {
					case "count":
						m.Count = r.int64()
					case "timeStamp":
						m.Timestamp = r.int64()
					}
				})
				d.Topics[topic] = m
			})
		}
	})
	return d, r.finish("timer metrics")
}
