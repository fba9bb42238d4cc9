package wire

import "strconv"

// PopOrder is what a broker knows of the messages that a group last popped in
// order from a queue: ConsumerOrderInfoManager.OrderInfo of Apache RocketMQ.
type PopOrder struct {
	AttemptID       string
	PopTime         int64 // ms since 1970
	InvisibleMillis int64
	Offsets         []int64 // of the messages
	Acked           uint64  // bit i: the i-th message is done
	Consumed        map[int64]int32
	Visible         map[int64]int64 // by offset: when it is visible, if that was changed
	LastTime        int64
}

// PopOrders is the content of config/consumerOrderInfo.json: by "topic@group",
// then by queue.
type PopOrders struct {
	Table map[string]map[int32]*PopOrder
}

// AppendJSON appends the document.
func (d *PopOrders) AppendJSON(dst []byte) []byte {
	w := jsonWriter{b: dst}
	w.open('{')
	w.key("table")
	w.open('{')
	for _, key := range sortedKeys(d.Table) {
		w.textKey(key)
		w.open('{')
		for _, id := range sortedKeys(d.Table[key]) {
			w.intKey(int64(id))
			w.popOrder(d.Table[key][id])
		}
		w.close('}')
	}
	w.close('}')
	w.close('}')
	return w.b
}

func (w *jsonWriter) popOrder(d *PopOrder) {
	w.open('{')
	w.optText("a", d.AttemptID)
	w.int("cm", int64(d.Acked))
	w.int("i", d.InvisibleMillis)
	w.int("l", d.LastTime)
	w.key("o")
	w.open('[')
	for i, o := range d.Offsets {
		w.sep()
		if i > 0 {
			o -= d.Offsets[0]
		}
		w.b = strconv.AppendInt(w.b, o, 10)
	}
	w.close(']')
	if d.Consumed != nil {
		w.key("oc")
		w.open('{')
		for _, o := range sortedKeys(d.Consumed) {
			w.intKey(o)
			w.b = strconv.AppendInt(w.b, int64(d.Consumed[o]), 10)
		}
		w.close('}')
	}
	if d.Visible != nil {
		w.key("ot")
		w.open('{')
		for _, o := range sortedKeys(d.Visible) {
			w.intKey(o)
			w.b = strconv.AppendInt(w.b, d.Visible[o], 10)
		}
		w.close('}')
	}
	w.int("popTime", d.PopTime)
	w.close('}')
}

// DecodePopOrders reads the document.
func DecodePopOrders(b []byte) (PopOrders, error) {
	r := jsonReader{b: b}
	d := PopOrders{Table: map[string]map[int32]*PopOrder{}}
	r.object(func(k jsonKey) {
		if string(k.text) != "table" {
			return
		}
		r.object(func(k jsonKey) {
			queues := map[int32]*PopOrder{}
			key := string(k.text)
			r.object(func(k jsonKey) {
				id := k.int32(&r)
				queues[id] = r.popOrder()
			})
			d.Table[key] = queues
		})
	})
	return d, r.finish("consumer order info")
}

func (r *jsonReader) popOrder() *PopOrder {
	d := &PopOrder{}
	r.object(func(k jsonKey) {
		switch string(k.text) {
		case "a":
			d.AttemptID = r.text()
		case "cm":
			d.Acked = uint64(r.int64())
		case "i":
			d.InvisibleMillis = r.int64()
		case "l":
			d.LastTime = r.int64()
		case "o":
			r.array(func() {
				o := r.int64()
				if len(d.Offsets) > 0 {
					o += d.Offsets[0]
				}
				d.Offsets = append(d.Offsets, o)
			})
		case "oc":
			d.Consumed = map[int64]int32{}
			r.object(func(k jsonKey) { o := k.int64(r); d.Consumed[o] = r.int32() })
		case "ot":
			d.Visible = map[int64]int64{}
			r.object(func(k jsonKey) { o := k.int64(r); d.Visible[o] = r.int64() })
		case "popTime":
			d.PopTime = r.int64()
		}
	})
	return d
}
