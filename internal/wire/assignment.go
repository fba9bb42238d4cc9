package wire

// Modes in which a group's consumers get the messages of a topic.
const (
	ModePull = "PULL"
	ModePop  = "POP"
)

// AssignmentRequest is the body of QUERY_ASSIGNMENT (400).
type AssignmentRequest struct {
	ClientID string
	Group    string
	Model    string // Clustering or Broadcasting
	Strategy string // AVG, AVG_BY_CIRCLE, ...
	Topic    string
}

// AppendJSON appends the body.
func (d *AssignmentRequest) AppendJSON(dst []byte) []byte {
	w := jsonWriter{b: dst}
	w.open('{')
	w.text("clientId", d.ClientID)
	w.text("consumerGroup", d.Group)
	w.text("messageModel", d.Model)
	w.text("strategyName", d.Strategy)
	w.text("topic", d.Topic)
	w.close('}')
	return w.b
}

// DecodeAssignmentRequest reads the body.
func DecodeAssignmentRequest(b []byte) (AssignmentRequest, error) {
	r := jsonReader{b: b}
	d := AssignmentRequest{Model: Clustering}
	r.object(func(k jsonKey) {
		switch string(k.text) {
		case "clientId":
			d.ClientID = r.text()
		case "consumerGroup":
			d.Group = r.text()
		case "messageModel":
			d.Model = r.text()
		case "strategyName":
			d.Strategy = r.text()
		case "topic":
			d.Topic = r.text()
		}
	})
	return d, r.finish("assignment request")
}

// Assignment is one queue that a consumer is to take messages from. With the
// mode POP the queue may be -1: any queue of the broker.
type Assignment struct {
	Queue       MessageQueue
	Mode        string            // Mode...
	Attachments map[string]string // nil: absent
}

// Assignments answers 400. Without a list, which Known tells from an empty one,
// the consumer keeps what it has.
type Assignments struct {
	List  []Assignment
	Known bool
}

// AppendJSON appends the body.
func (d *Assignments) AppendJSON(dst []byte) []byte {
	w := jsonWriter{b: dst}
	w.open('{')
	if d.Known {
		w.key("messageQueueAssignments")
		w.open('[')
		for i := range d.List {
			a := &d.List[i]
			w.item('{')
			if a.Attachments != nil {
				w.textMap("attachments", a.Attachments)
			}
			w.key("messageQueue")
			w.queue(a.Queue)
			w.optText("mode", a.Mode)
			w.close('}')
		}
		w.close(']')
	}
	w.close('}')
	return w.b
}

// DecodeAssignments reads the body.
func DecodeAssignments(b []byte) (Assignments, error) {
	r := jsonReader{b: b}
	var d Assignments
	r.object(func(k jsonKey) {
		if string(k.text) != "messageQueueAssignments" || r.null() {
			return
		}
		d.Known = true
		r.array(func() {
			var a Assignment
			r.object(func(k jsonKey) {
				switch string(k.text) {
				case "attachments":
					a.Attachments = r.textMap()
				case "messageQueue":
					a.Queue = r.queue()
				case "mode":
					a.Mode = r.text()
				}
			})
			d.List = append(d.List, a)
		})
	})
	return d, r.finish("assignments")
}

// RequestMode is the body of SET_MESSAGE_REQUEST_MODE (401).
type RequestMode struct {
	Group       string
	Topic       string
	Mode        string // Mode...
	ShareQueues int32  // with POP: how many other members' queues a member takes messages from; 0 or less: all
}

// AppendJSON appends the body.
func (d *RequestMode) AppendJSON(dst []byte) []byte {
	w := jsonWriter{b: dst}
	w.requestMode(d)
	return w.b
}

func (w *jsonWriter) requestMode(d *RequestMode) {
	w.open('{')
	w.text("consumerGroup", d.Group)
	w.text("mode", d.Mode)
	w.int("popShareQueueNum", int64(d.ShareQueues))
	w.text("topic", d.Topic)
	w.close('}')
}

// DecodeRequestMode reads the body.
func DecodeRequestMode(b []byte) (RequestMode, error) {
	r := jsonReader{b: b}
	d := r.requestMode()
	return d, r.finish("request mode")
}

func (r *jsonReader) requestMode() RequestMode {
	d := RequestMode{Mode: ModePull}
	r.object(func(k jsonKey) {
		switch string(k.text) {
		case "consumerGroup":
			d.Group = r.text()
		case "mode":
			d.Mode = r.text()
		case "popShareQueueNum":
			d.ShareQueues = r.int32()
		case "topic":
			d.Topic = r.text()
		}
	})
	return d
}

// RequestModes answers 402 and is the content of
// config/messageRequestMode.json: modes by topic, then by group.
type RequestModes struct {
	Modes map[string]map[string]RequestMode
}

// AppendJSON appends the body.
func (d *RequestModes) AppendJSON(dst []byte) []byte {
	w := jsonWriter{b: dst}
	w.open('{')
	w.key("messageRequestModeMap")
	w.open('{')
	for _, topic := range sortedKeys(d.Modes) {
		w.textKey(topic)
		w.open('{')
		for _, group := range sortedKeys(d.Modes[topic]) {
			w.textKey(group)
			m := d.Modes[topic][group]
			w.requestMode(&m)
		}
		w.close('}')
	}
	w.close('}')
	w.close('}')
	return w.b
}

// DecodeRequestModes reads the body.
func DecodeRequestModes(b []byte) (RequestModes, error) {
	r := jsonReader{b: b}
	d := RequestModes{Modes: map[string]map[string]RequestMode{}}
	r.object(func(k jsonKey) {
		if string(k.text) != "messageRequestModeMap" {
			return
		}
		r.object(func(k jsonKey) {
			topic, groups := string(k.text), map[string]RequestMode{}
			r.object(func(k jsonKey) {
				group := string(k.text)
				groups[group] = r.requestMode()
			})
			d.Modes[topic] = groups
		})
	})
	return d, r.finish("request modes")
}
