package main

import (
	"encoding/binary"
	"hash/crc32"
	"strings"
	"sync/atomic"
)

// nullPull is the null broker for consumers: so many messages in every queue,
// all alike.
type nullPull struct {
	each   int64  // messages of each queue
	page   []byte // the records of one answer
	record int    // bytes of one of them
	client atomic.Pointer[string]
}

const perPull = 32

// init makes count messages with bodies of size bytes.
func (p *nullPull) init(count int64, size int) {
	p.each = count / queues
	b := body(size)
	const properties = "UNIQ_KEY\x017F000001000018B4AAC200000000000000\x02"
	be := binary.BigEndian
	r := make([]byte, 4, 128+size)
	r = be.AppendUint32(r, 0xDAA320A7)
	r = be.AppendUint32(r, crc32.ChecksumIEEE(b))
	r = append(r, make([]byte, 4+4+8+8+4)...) // queue, flag, offsets, flags of the system
	for range 2 {
		r = be.AppendUint64(r, 1_700_000_000_000) // born and stored
		r = append(r, 127, 0, 0, 1, 0, 0, 0x2A, 0x9F)
	}
	r = append(r, make([]byte, 4+8)...)
	r = append(be.AppendUint32(r, uint32(len(b))), b...)
	r = append(append(r, byte(len(topic))), topic...)
	r = append(be.AppendUint16(r, uint16(len(properties))), properties...)
	be.PutUint32(r, uint32(len(r)))
	p.record = len(r)
	for range perPull {
		p.page = append(p.page, r...)
	}
}

// Where a record's queue and its offset in it are.
const queueAt, offsetAt, physicalAt = 12, 20, 28

// answer gives out what follows the offset that is asked for. Behind the last
// message the question stays open: the load ends with the last message.
func (p *nullPull) answer(a *reply, head []byte) {
	queue, _ := number(head, `"queueId":"`)
	from, _ := number(head, `"queueOffset":"`)
	most, _ := number(head, `"maxMsgNums":"`)
	n := min(perPull, most, p.each-from)
	if n <= 0 {
		return
	}
	a.begin(0)
	a.number("suggestWhichBrokerId", 0)
	a.number("nextBeginOffset", from+n)
	a.number("minOffset", 0)
	a.number("maxOffset", p.each)
	a.body = p.page[:int(n)*p.record]
	a.patch = func(b []byte) {
		for i := range n {
			r := b[int(i)*p.record:]
			binary.BigEndian.PutUint32(r[queueAt:], uint32(queue))
			binary.BigEndian.PutUint64(r[offsetAt:], uint64(from+i))
			binary.BigEndian.PutUint64(r[physicalAt:], uint64((queue*p.each+from+i)*int64(p.record)))
		}
	}
}

// join notes the client of a heartbeat. Loads come one after the other, so the
// last one is the only one.
func (p *nullPull) join(heartbeat []byte) {
	_, id, ok := strings.Cut(string(heartbeat), `"clientID":"`)
	if !ok {
		return
	}
	id, _, _ = strings.Cut(id, `"`)
	p.client.Store(&id)
}

// members are the clients of every group.
func (p *nullPull) members() []byte {
	id := p.client.Load()
	if id == nil {
		return []byte(`{"consumerIdList":[]}`)
	}
	return []byte(`{"consumerIdList":["` + *id + `"]}`)
}
