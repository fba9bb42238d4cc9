package testbroker

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Rule is a fault in the making: which requests it concerns. It begins with
// [Cluster.On] and takes effect with the method that says what happens to them:
//
//	busy := cluster.On(testbroker.SendMessage).Topic("orders").Times(2).Reply(rocketmq.CodeSystemBusy, "busy")
//
// Rules are asked in the order in which they were made; the first that concerns
// a request has it to itself, unless it only watches ([Rule.Observe]). A request
// that no rule concerns goes its way. Rules outlive restarts of servers. The
// methods of a Rule are for one goroutine.
type Rule struct {
	c        *Cluster
	where    string // the line that made it
	ops      []Op
	text     string // what it was made of, for messages
	topic    string
	group    string
	server   string
	filter   func(*Call) bool
	skip     int
	times    int // 0: always
	after    bool
	optional bool
}

// On begins a rule about requests of some kinds, or about all requests. A rule
// that has been used by no request when the cluster is closed fails the test, as
// it did not test what it should; see [Rule.Optional].
func (c *Cluster) On(ops ...Op) *Rule {
	r := &Rule{c: c, ops: ops, text: "On("}
	for i, o := range ops {
		if i > 0 {
			r.text += ", "
		}
		r.text += o.String()
	}
	r.text += ")"
	if _, file, line, ok := runtime.Caller(1); ok {
		r.where = filepath.Base(file) + ":" + strconv.Itoa(line)
	}
	return r
}

// Topic restricts the rule to requests about a topic, by the name that servers
// know it by: %RETRY%group for retries.
func (r *Rule) Topic(name string) *Rule { r.topic = name; return r.say("Topic", name) }

// Group restricts the rule to requests of a producer or consumer group.
func (r *Rule) Group(name string) *Rule { r.group = name; return r.say("Group", name) }

// Server restricts the rule to one server: the name of a broker, as
// [Cluster.Brokers] has it, or namesrv-0 and so on.
func (r *Rule) Server(name string) *Rule { r.server = name; return r.say("Server", name) }

// Where restricts the rule to requests for which f is true. f is called on the
// servers' goroutines, for one request at a time per connection, and must not
// block nor end the test (FailNow).
func (r *Rule) Where(f func(*Call) bool) *Rule {
	r.filter = f
	r.text += ".Where(...)"
	return r
}

// Skip lets the first n requests pass.
func (r *Rule) Skip(n int) *Rule { r.skip = max(n, 0); return r.say("Skip", n) }

// Times ends the rule after n requests; further ones pass. Without it, or with n
// of zero, the rule holds until [Handle.Remove].
func (r *Rule) Times(n int) *Rule { r.times = max(n, 0); return r.say("Times", n) }

// AfterApply has the server do what is asked of it; what happens, happens to
// the answer, when it leaves. A send whose answer is lost is the classic way to
// a duplicate:
//
//	cluster.On(testbroker.SendMessage).AfterApply().Times(1).Disconnect()
//
// One-way requests have no answer and are no concern of such a rule.
func (r *Rule) AfterApply() *Rule { r.after = true; r.text += ".AfterApply()"; return r }

// Optional lets the test pass if no request has used the rule.
func (r *Rule) Optional() *Rule { r.optional = true; return r }

func (r *Rule) say(method string, arg any) *Rule {
	r.text += fmt.Sprintf(".%s(%#v)", method, arg)
	return r
}

// Reply answers requests with a code and a remark instead of the server, which
// does not see them; with [Rule.AfterApply] it replaces the server's answer.
func (r *Rule) Reply(code rocketmq.Code, remark string) *Handle {
	return r.add("Reply", func(_ *Handle, c *tapConn, way int, frame []byte, f *wire.Frame) []byte {
		answer := wire.Command{Code: int32(code), Remark: remark}
		b := answer.Append(nil, wire.Head{Flag: wire.FlagResponse, Opaque: f.Opaque, Encoding: f.Encoding})
		switch {
		case f.IsResponse():
			return b
		case !f.IsOneway():
			c.inject(opposite(way), b)
		}
		return nil
	})
}

// Delay holds up requests, with [Rule.AfterApply] their answers, for d of the
// machine's time. Others may overtake them.
func (r *Rule) Delay(d time.Duration) *Handle {
	return r.add("Delay", func(_ *Handle, c *tapConn, way int, frame []byte, _ *wire.Frame) []byte {
		c.after(d, func() { c.inject(way, frame) })
		return nil
	})
}

// Drop loses requests, or their answers, without a trace: who asked runs into
// its timeout.
func (r *Rule) Drop() *Handle {
	return r.add("Drop", func(*Handle, *tapConn, int, []byte, *wire.Frame) []byte { return nil })
}

// Disconnect loses the request, or its answer, and closes the connection:
// whatever else is under way there fails, too.
func (r *Rule) Disconnect() *Handle {
	return r.add("Disconnect", func(_ *Handle, c *tapConn, _ int, _ []byte, _ *wire.Frame) []byte {
		c.cut()
		return nil
	})
}

// Corrupt replaces the bytes of requests, or of their answers, by what f makes
// of them: a whole frame with its length, which f may change in place. f is
// called on the servers' goroutines and must not block nor end the test (FailNow).
func (r *Rule) Corrupt(f func(frame []byte) []byte) *Handle {
	return r.add("Corrupt", func(_ *Handle, _ *tapConn, _ int, frame []byte, _ *wire.Frame) []byte { return f(frame) })
}

// Hold parks requests, or their answers, until [Handle.Release]. Others on the
// same connection pass.
func (r *Rule) Hold() *Handle {
	h := r.handle("Hold", func(h *Handle, c *tapConn, way int, frame []byte, _ *wire.Frame) []byte {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.released {
			return frame
		}
		h.held = append(h.held, func() { c.inject(way, frame) })
		return nil
	})
	h.parks = true
	r.c.faults.add(h)
	return h
}

// Observe calls f for each request, which goes its way, also to further rules.
// f is called on the servers' goroutines, for one request at a time per
// connection, and must not block nor end the test (FailNow). With
// [Rule.AfterApply] it is called when the answer is on its way.
func (r *Rule) Observe(f func(*Call)) *Handle {
	h := r.handle("Observe", nil)
	h.observe = f
	r.c.faults.add(h)
	return h
}

// act does to a frame what a rule says, and returns what goes on instead of
// it; nil: nothing. No lock is held.
type act func(h *Handle, c *tapConn, way int, frame []byte, f *wire.Frame) []byte

func (r *Rule) handle(what string, do act) *Handle {
	return &Handle{rule: *r, text: r.text + "." + what + " at " + r.where, do: do, f: r.c.faults, news: make(chan struct{})}
}

func (r *Rule) add(what string, do act) *Handle {
	h := r.handle(what, do)
	r.c.faults.add(h)
	return h
}

// Handle is a rule that is in force. All methods are safe for concurrent use.
type Handle struct {
	rule    Rule // never changed
	text    string
	do      act         // nil: observes
	observe func(*Call) // nil: acts
	parks   bool        // requests stay with the handle
	f       *faults

	mu       sync.Mutex // guards all below
	seen     int        // requests that it concerned
	hits     int        // those it has done something to
	removed  bool
	released bool
	held     []func()
	news     chan struct{} // closed and replaced when hits grows
}

// Hits is how many requests the rule has done something to so far.
func (h *Handle) Hits() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.hits
}

// Wait blocks until the rule has done something to n requests, or ctx ends,
// whose cause it then returns.
func (h *Handle) Wait(ctx context.Context, n int) error {
	for {
		h.mu.Lock()
		hits, news := h.hits, h.news
		h.mu.Unlock()
		if hits >= n {
			return nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return fmt.Errorf("testbroker: %d of %d requests have come to %s: %w", hits, n, h.text, context.Cause(ctx))
		}
	}
}

// Release lets everything go on that [Rule.Hold] has parked, oldest first, and
// parks nothing any more. For other rules it is [Handle.Remove].
func (h *Handle) Release() {
	h.f.remove(h)
	h.mu.Lock()
	h.removed, h.released = true, true
	held := h.held
	h.held = nil
	h.mu.Unlock()
	for _, pass := range held {
		pass()
	}
}

// Remove ends the rule. What it has parked goes on; what it delays comes when
// it is time.
func (h *Handle) Remove() { h.Release() }

// concerns decides whether a request is the rule's, and counts it.
func (h *Handle) concerns(c *Call) bool {
	r := &h.rule
	if len(r.ops) > 0 && !slices.Contains(r.ops, c.Op) && !slices.Contains(r.ops, Op(c.Code)) ||
		r.topic != "" && !slices.Contains(c.topics, r.topic) ||
		r.group != "" && !slices.Contains(c.groups, r.group) ||
		r.server != "" && r.server != c.Server ||
		r.after && c.Oneway ||
		r.filter != nil && !r.filter(c) {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.removed || r.times > 0 && h.seen >= r.skip+r.times {
		return false
	}
	h.seen++
	return h.seen > r.skip
}

// hit counts a request that the rule has done something to.
func (h *Handle) hit() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hits++
	close(h.news)
	h.news = make(chan struct{})
}

// unused is why the test fails over the rule, "" if it does not.
func (h *Handle) unused() string {
	if h.rule.optional || h.Hits() > 0 {
		return ""
	}
	return "no request has used the rule " + strings.TrimSpace(h.text)
}
