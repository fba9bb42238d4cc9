package remoting

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// pending is the table of calls that wait for an answer. Opaques count up and
// the slot of one is its low bits, so there is nothing to hash; an opaque
// whose slot is still taken by an older call (a long poll) is skipped. The
// table doubles before it is half full. Numbers come round after 2^31 calls,
// so the late answer to a call that timed out finds no other call.
type pending struct {
	n atomic.Int32 // calls in the table; written under mu

	mu     sync.Mutex // guards all below
	slots  []slot
	last   int32 // opaque given out last
	first  int64 // no deadline is earlier than this
	closed bool
}

type slot struct {
	x        Exchange // nil: free
	deadline int64    // nanoseconds after the connection's base; maxDeadline: none
	opaque   int32
}

const noDeadline = math.MaxInt64

// add registers x. It is false when the table was closed.
func (p *pending) add(x Exchange, deadline int64) (int32, bool) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return 0, false
	}
	if int(p.n.Load())*2 >= len(p.slots) {
		p.grow()
	}
	s := p.free()
	s.x, s.deadline, s.opaque = x, deadline, p.last
	if deadline < p.first || p.n.Load() == 0 {
		p.first = deadline
	}
	p.n.Add(1)
	opaque := p.last
	p.mu.Unlock()
	return opaque, true
}

// free moves last on to the next opaque whose slot is free.
func (p *pending) free() *slot {
	mask := int32(len(p.slots) - 1)
	for {
		p.last = (p.last + 1) & math.MaxInt32
		if p.last == 0 { // keeps the zero Token invalid
			continue
		}
		if s := &p.slots[p.last&mask]; s.x == nil {
			return s
		}
	}
}

func (p *pending) grow() {
	old := p.slots
	p.slots = make([]slot, max(2*len(old), 16))
	mask := int32(len(p.slots) - 1)
	for _, s := range old {
		if s.x != nil { // different low bits stay different with one more
			p.slots[s.opaque&mask] = s
		}
	}
}

// take removes the call and returns it, nil if it is not there. Whoever gets
// it calls Done; that is what makes Done happen once.
func (p *pending) take(opaque int32) Exchange {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.slots) == 0 || opaque <= 0 {
		return nil
	}
	s := &p.slots[opaque&int32(len(p.slots)-1)]
	if s.x == nil || s.opaque != opaque {
		return nil
	}
	x := s.x
	s.x = nil
	p.n.Add(-1)
	return x
}

// overdue removes the calls whose deadline is not after now and appends them
// to dst.
func (p *pending) overdue(dst []Exchange, now int64) []Exchange {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.n.Load() == 0 || now < p.first {
		return dst
	}
	p.first = noDeadline
	for i := range p.slots {
		s := &p.slots[i]
		switch {
		case s.x == nil:
		case s.deadline <= now:
			dst = append(dst, s.x)
			s.x = nil
			p.n.Add(-1)
		case s.deadline < p.first:
			p.first = s.deadline
		}
	}
	return dst
}

// close refuses further calls and removes and returns the present ones.
func (p *pending) close() []Exchange {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	var all []Exchange
	for _, s := range p.slots {
		if s.x != nil {
			all = append(all, s.x)
		}
	}
	p.slots = nil
	p.n.Store(0)
	return all
}

// nanos is a deadline as the table stores it; the zero time is none.
func nanos(base, deadline time.Time) int64 {
	if deadline.IsZero() {
		return noDeadline
	}
	return int64(deadline.Sub(base))
}

// next is an opaque for a request that has no answer.
func (p *pending) next() int32 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = (p.last + 1) & math.MaxInt32
	return p.last
}
