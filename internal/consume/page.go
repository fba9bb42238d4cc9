package consume

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"sync/atomic"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/view"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// page is the messages of one pull response that the subscription wants. The
// messages are views into one copy of the response's body; a page costs about
// ten allocations whatever it holds.
type page struct {
	q     *queue
	views []rocketmq.MessageView
	ptrs  []*rocketmq.MessageView // of views, in order: handlers get slices of it
	meta  []meta
	bits  []uint64 // one bit a message that is done, then one that is begun; atomic
	left  atomic.Int32
	first work // all of the page's messages, if they are for one subscription
	small [2]uint64
}

// meta is what the pipeline needs of a message and the application does not.
type meta struct {
	logOffset int64
	size      int32
	sysFlag   int32
	flag      int32
}

// decodePage decodes the body of a pull response, which it takes over. keep is
// the exact test of a message's tag; delta is added to each queue offset. An
// error says what is wrong with the first message that cannot be read; the
// page holds those before it and resume is the offset to go on from, or -1 if
// there is none.
func decodePage(q *queue, body []byte, delta int64, topicOf func(string) string, keep func(tag string) bool) (p *page, resume int64, err error) {
	resume = -1
	n := 0
	for rest := body; len(rest) >= 4; n++ {
		size := int(int32(binary.BigEndian.Uint32(rest)))
		if size <= 0 || size > len(rest) {
			break // the decoder below says what is wrong
		}
		rest = rest[size:]
	}
	d := decoder{
		q: q, delta: delta, topicOf: topicOf, keep: keep,
		p:   &page{q: q, views: make([]rocketmq.MessageView, 0, n), meta: make([]meta, 0, n)},
		ids: make([]byte, 0, n*view.OffsetIDLen),
	}
	var r wire.Record
	for len(body) > 0 {
		size, derr := wire.DecodeRecord(body, &r)
		if derr != nil {
			err = fmt.Errorf("message after offset %d: %w", resume-1, derr)
			break
		}
		if derr = d.add(&r); derr != nil {
			err = derr
			break
		}
		resume = r.QueueOffset + delta + 1
		body = body[size:]
	}
	return d.page(), resume, err
}

type decoder struct {
	q       *queue
	delta   int64
	topicOf func(string) string
	keep    func(tag string) bool
	p       *page
	ids     []byte   // arena of offset ids
	keys    []string // arena of keys
}

// add takes one record, which may stand for a whole inner batch.
func (d *decoder) add(r *wire.Record) error {
	const batch = wire.SysInnerBatch | wire.SysNeedUnwrap
	if r.SysFlag&batch != batch {
		d.message(r)
		return nil
	}
	it := wire.Batch(r.Body)
	first, item := r.QueueOffset, *r
	for k := int64(0); ; k++ {
		b, ok, err := it.Next()
		if err != nil {
			return fmt.Errorf("inner batch at offset %d: %w", first+d.delta, err)
		}
		if !ok {
			return nil
		}
		item.Flag, item.Body, item.Properties = b.Flag, b.Body, b.Properties
		item.QueueOffset, item.SysFlag = first+k, r.SysFlag&^batch
		item.Size = int32(len(b.Body) + len(b.Properties))
		d.message(&item)
	}
}

// message adds one message unless its tag is not wanted.
func (d *decoder) message(r *wire.Record) {
	p := d.p
	p.views = append(p.views, rocketmq.MessageView{})
	v := &p.views[len(p.views)-1]
	v.Topic = d.q.key.Topic
	history := view.Message(v, r, &d.ids, &d.keys)
	if history.RetryTopic != "" {
		v.Topic = d.topicOf(history.RetryTopic)
	}
	if !d.keep(v.Tag) {
		p.views = p.views[:len(p.views)-1]
		return
	}
	v.Queue = d.q.key
	v.Offset = r.QueueOffset + d.delta
	p.meta = append(p.meta, meta{logOffset: r.PhyOffset, size: r.Size, sysFlag: r.SysFlag, flag: r.Flag})
}

// page finishes the page once all its messages are in place and will not move
// any more.
func (d *decoder) page() *page {
	p := d.p
	n := len(p.views)
	p.ptrs = make([]*rocketmq.MessageView, n)
	for i := range p.views {
		p.ptrs[i] = &p.views[i]
	}
	if p.bits = p.small[:]; n > 64 {
		p.bits = make([]uint64, 2*((n+63)/64))
	}
	p.left.Store(int32(n))
	return p
}

// finish marks message i as done. It is true if that was the last one of the
// page.
func (p *page) finish(i int) bool {
	atomic.OrUint64(&p.bits[i/64], 1<<(i%64))
	return p.left.Add(-1) == 0
}

// finished reports whether message i is done.
func (p *page) finished(i int) bool {
	return atomic.LoadUint64(&p.bits[i/64])&(1<<(i%64)) != 0
}

// begin marks message i as handed out.
func (p *page) begin(i int) { atomic.OrUint64(&p.bits[len(p.bits)/2+i/64], 1<<(i%64)) }

// begun reports whether message i was handed out.
func (p *page) begun(i int) bool {
	return atomic.LoadUint64(&p.bits[len(p.bits)/2+i/64])&(1<<(i%64)) != 0
}

// lowest is the index of the first message that is not done, which may be
// beyond the last.
func (p *page) lowest() int {
	done := p.bits[:len(p.bits)/2]
	for w := range done {
		if open := ^atomic.LoadUint64(&done[w]); open != 0 {
			return w*64 + bits.TrailingZeros64(open)
		}
	}
	return len(done) * 64
}
