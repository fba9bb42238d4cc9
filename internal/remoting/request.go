package remoting

import (
	"fmt"
	"runtime/debug"
	"strconv"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Handler serves one request. The request and its frame are valid during the
// call only: a handler that answers later keeps [Request.Replier] and copies
// what it needs. A handler on the connection's reader must not block. A panic
// is answered with code 1 and its text, logged with the stack, and harms
// nobody else. A handler that returns without having answered, taken the
// Replier or called [Request.Drop] is answered with code 1 for it.
type Handler func(r *Request)

// Responder is a response that writes itself, for hot paths and large bodies:
// AppendResponse appends one frame to dst with h, completed by its code and
// remark, as the head, and returns the grown slice. It is called at most once,
// before the reply method returns, under the output buffer's lock: it must not
// block or use the connection. For one-way requests and dead connections it is
// not called at all.
type Responder interface {
	AppendResponse(dst []byte, h wire.Head) []byte
}

// Request is one request of the peer. It is used by one goroutine at a time.
type Request struct {
	c        *Conn
	f        *wire.Frame
	late     bool // not on the reader: the flusher writes
	settled  bool // answered, dropped, or left to a Replier
	answered bool
}

// Frame is the request as it arrived.
func (r *Request) Frame() *wire.Frame { return r.f }

// Conn is the connection that it arrived on.
func (r *Request) Conn() *Conn { return r.c }

// Reply answers the request in the request's own encoding. ext may be nil. A
// one-way request gets no answer, and of several answers only the first is
// sent. Reply never blocks; the answer is lost if the connection dies.
func (r *Request) Reply(code int32, remark string, ext wire.ExtEncoder, body []byte) {
	r.ReplyAppend(&wireResponse{wire.Command{Code: code, Remark: remark, Ext: ext, Body: body}})
}

// ReplyAppend is [Request.Reply] for an answer that writes itself.
func (r *Request) ReplyAppend(a Responder) {
	if r.answered {
		return
	}
	r.answered, r.settled = true, true
	p := Replier{r.c, r.f.Opaque, r.f.Encoding, r.f.IsOneway()}
	p.reply(a, r.late)
}

// Replier is the right to answer later. The request counts as taken care of
// once it has been called.
func (r *Request) Replier() Replier {
	r.settled = true
	return Replier{r.c, r.f.Opaque, r.f.Encoding, r.f.IsOneway()}
}

// Drop leaves the request without an answer; the peer runs into its timeout.
func (r *Request) Drop() { r.settled = true }

// Replier answers one request from any goroutine, once. It is a small value
// that may be kept as long as wanted; the zero Replier answers nobody. Replying never blocks: a peer that lets
// more than Config.MaxOutput bytes of answers pile up loses its connection.
type Replier struct {
	c        *Conn
	opaque   int32
	encoding wire.Encoding
	oneway   bool
}

// Conn is the connection that the request arrived on. A watch on its Done
// tells when nobody waits for the answer any more.
func (p Replier) Conn() *Conn { return p.c }

// Oneway tells whether the request wants no answer.
func (p Replier) Oneway() bool { return p.oneway }

// Reply answers as [Request.Reply] does.
func (p Replier) Reply(code int32, remark string, ext wire.ExtEncoder, body []byte) {
	p.reply(&wireResponse{wire.Command{Code: code, Remark: remark, Ext: ext, Body: body}}, true)
}

// ReplyAppend answers as [Request.ReplyAppend] does.
func (p Replier) ReplyAppend(a Responder) { p.reply(a, true) }

// reply appends the answer. Late answers are written by the flusher, the
// reader's own when it has nothing left to read.
func (p Replier) reply(a Responder, late bool) {
	if p.oneway || p.c == nil {
		return
	}
	c := p.c
	h := wire.Head{Flag: wire.FlagResponse, Opaque: p.opaque, Encoding: p.encoding}
	queued, err := c.out.reply(c.cfg.MaxFrame, a, h)
	if err == ErrFrameTooLarge {
		remark := "answer is larger than the frame limit of " + strconv.Itoa(c.cfg.MaxFrame) + " bytes"
		a = &wireResponse{wire.Command{Code: wire.RespSystemError, Remark: remark}}
		queued, err = c.out.reply(c.cfg.MaxFrame, a, h)
	}
	if err != nil {
		return // the connection is gone
	}
	if queued > c.cfg.MaxOutput {
		c.Close(ErrOverflow)
		return
	}
	if !late && queued < eagerReplies {
		c.unsent++
		return
	}
	if c.out.claim() {
		c.launch(Later, true)
	}
}

// eagerReplies is how many bytes of answers the reader lets gather while it
// still has requests to look at.
const eagerReplies = 256 << 10

type wireResponse struct{ wire.Command }

// AppendResponse implements Responder.
func (w *wireResponse) AppendResponse(dst []byte, h wire.Head) []byte { return w.Append(dst, h) }

// serve runs the handler for the frame that the reader holds.
func (c *Conn) serve() {
	r := &c.req
	r.settled, r.answered = false, false
	if c.draining != nil && c.draining.Load() && c.frame.Version > lastWithoutGoAway && !c.frame.IsOneway() {
		r.Reply(wire.RespGoAway, "shutting down, use another connection", nil, nil)
		return
	}
	c.begin()
	r.run(c.cfg.Handler)
	c.end()
}

// lastWithoutGoAway is V5_3_1: later versions understand GO_AWAY.
const lastWithoutGoAway = 475

// begin and end count the requests that handlers work on.
func (c *Conn) begin() { c.active.Add(1) }

func (c *Conn) end() {
	if c.active.Add(-1) == 0 && c.draining != nil && c.draining.Load() {
		c.idle()
	}
}

// run calls the handler and takes the consequences.
func (r *Request) run(h Handler) {
	if h == nil {
		h = notSupported
	}
	defer func() {
		if p := recover(); p != nil {
			r.c.cfg.Logger.Error("handler panicked", "addr", r.c.peer, "code", r.f.Code, "err", p, "stack", string(debug.Stack()))
			r.Reply(wire.RespSystemError, fmt.Sprintf("handler panicked: %v", p), nil, nil)
		}
	}()
	h(r)
	if !r.settled && !r.f.IsOneway() {
		r.Reply(wire.RespSystemError, "request was not answered", nil, nil)
	}
}

// notSupported answers as Apache's servers do, leading space included.
func notSupported(r *Request) {
	r.Reply(wire.RespRequestCodeNotSupported, " request type "+strconv.Itoa(int(r.f.Code))+" not supported", nil, nil)
}
