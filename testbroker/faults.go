package testbroker

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/gorocketmq/rocketmq/internal/run"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// faults is all rules of a cluster. Its taps ask it about every frame once
// there is a rule, or with [Strict] from the start.
type faults struct {
	g      *run.Group // writers of connections, delays
	strict *strict    // nil: not strict
	watch  atomic.Bool
	rules  atomic.Pointer[[]*Handle] // in force; replaced, never changed

	mu  sync.Mutex // guards all below and the replacing of rules
	all []*Handle
}

func newFaults(s *strict) *faults {
	f := &faults{g: run.NewGroup(context.Background()), strict: s}
	f.rules.Store(&[]*Handle{})
	f.watch.Store(s != nil)
	return f
}

// watching tells whether anybody wants to see frames. It stays so once it is.
func (f *faults) watching() bool { return f.watch.Load() }

func (f *faults) add(h *Handle) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = append(f.all, h)
	rules := append(slices.Clone(*f.rules.Load()), h)
	f.rules.Store(&rules)
	f.watch.Store(true)
}

func (f *faults) remove(h *Handle) {
	f.mu.Lock()
	defer f.mu.Unlock()
	rules := slices.DeleteFunc(slices.Clone(*f.rules.Load()), func(x *Handle) bool { return x == h })
	f.rules.Store(&rules)
}

// unused are the rules that no request has used.
func (f *faults) unused() []string {
	f.mu.Lock()
	all := f.all
	f.mu.Unlock()
	var out []string
	for _, h := range all {
		if why := h.unused(); why != "" {
			out = append(out, why)
		}
	}
	return out
}

// callID names a request that is under way on a connection: both sides number
// theirs on their own.
type callID struct {
	way    int // of the request
	opaque int32
}

// pendingCall is a request whose answer somebody waits for.
type pendingCall struct {
	call  *Call
	rules []*Handle // of AfterApply
}

func opposite(way int) int { return in + out - way }

// judge lets the rules have a frame and returns what goes on, nil for
// nothing. The frame is whole and its own.
func (f *faults) judge(c *tapConn, way int, frame []byte) []byte {
	d := &wire.Frame{}
	if d.Decode(bytes.Clone(frame)) != nil {
		return frame // for the server to refuse
	}
	if d.IsResponse() {
		p := c.answered(callID{opposite(way), d.Opaque})
		if p == nil {
			return frame
		}
		if f.strict != nil {
			f.strict.answered(p.call, d)
		}
		for _, h := range p.rules {
			if frame = h.apply(c, way, frame, d, p.call); frame == nil {
				break
			}
		}
		return frame
	}
	call := newCall(d, c.t.server, c.RemoteAddr().String(), way == out)
	if f.strict != nil {
		f.strict.asked(c, call)
	}
	p := &pendingCall{call: call}
	var now []*Handle
	taken := false // by a rule that has the request to itself
	for _, h := range *f.rules.Load() {
		switch {
		case h.do != nil && taken || !h.concerns(call):
			continue
		case h.rule.after:
			p.rules = append(p.rules, h)
		default:
			now = append(now, h)
		}
		taken = taken || h.do != nil
	}
	if !call.Oneway && (f.strict != nil || len(p.rules) > 0) {
		c.expect(callID{way, d.Opaque}, p)
	}
	for _, h := range now {
		if frame = h.apply(c, way, frame, d, call); frame == nil {
			break
		}
	}
	return frame
}

// apply does what the rule says.
func (h *Handle) apply(c *tapConn, way int, frame []byte, d *wire.Frame, call *Call) []byte {
	switch {
	case h.observe != nil:
		h.observe(call)
		h.hit()
		return frame
	case h.parks:
		defer h.hit() // who has waited for it may release it
	default:
		h.hit() // before the client notices, who may look for it
	}
	return h.do(h, c, way, frame, d)
}

func (c *tapConn) expect(id callID, p *pendingCall) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls[id] = p
}

func (c *tapConn) answered(id callID) *pendingCall {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.calls[id]
	delete(c.calls, id)
	return p
}

// gone is told of each connection that has ended.
func (f *faults) gone(c *tapConn) {
	if f.strict != nil {
		f.strict.gone(c)
	}
}
