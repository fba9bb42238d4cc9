package wire

// LockBody is the body of LOCK_BATCH_MQ (41) and UNLOCK_BATCH_MQ (42).
type LockBody struct {
	Group          string
	ClientID       string
	Queues         []MessageQueue
	OnlyThisBroker bool // between brokers; 5.x
}

// AppendJSON appends the body.
func (d *LockBody) AppendJSON(dst []byte) []byte {
	w := jsonWriter{b: dst}
	w.open('{')
	w.text("clientId", d.ClientID)
	w.text("consumerGroup", d.Group)
	w.queues("mqSet", d.Queues)
	w.bool("onlyThisBroker", d.OnlyThisBroker)
	w.close('}')
	return w.b
}

// DecodeLockBody reads the body.
func DecodeLockBody(b []byte) (LockBody, error) {
	r := jsonReader{b: b}
	var d LockBody
	r.object(func(k jsonKey) {
		switch string(k.text) {
		case "clientId":
			d.ClientID = r.text()
		case "consumerGroup":
			d.Group = r.text()
		case "mqSet":
			d.Queues = r.queues()
		case "onlyThisBroker":
			d.OnlyThisBroker = r.bool()
		}
	})
	return d, r.finish("lock")
}

// LockedQueues answers code 41: those that are locked now.
type LockedQueues struct{ Queues []MessageQueue }

// AppendJSON appends the body.
func (d *LockedQueues) AppendJSON(dst []byte) []byte {
	w := jsonWriter{b: dst}
	w.open('{')
	w.queues("lockOKMQSet", d.Queues)
	w.close('}')
	return w.b
}

// DecodeLockedQueues reads the body.
func DecodeLockedQueues(b []byte) (LockedQueues, error) {
	r := jsonReader{b: b}
	var d LockedQueues
	r.object(func(k jsonKey) {
		if string(k.text) == "lockOKMQSet" {
			d.Queues = r.queues()
		}
	})
	return d, r.finish("locked queues")
}
