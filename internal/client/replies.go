package client

import (
	"errors"
	"sync"
	"time"

	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// replies are the replies that producers of this client wait for, whichever
// producer it is: brokers only know the client.
type replies struct {
	mu      sync.Mutex // guards waiting
	waiting map[string]*ExpectedReply
}

// ExpectedReply is a reply that somebody waits for.
type ExpectedReply struct {
	r  *Runtime
	id string
	ch chan *Reply // one slot
}

// Reply is a reply message that a broker has pushed (code 326). The broker
// waits for the answer: whoever takes the reply must call [Reply.Answer].
type Reply struct {
	Head    wire.PushReplyRequest
	Body    []byte // owned; as it was sent, perhaps compressed
	Arrived time.Time
	replier remoting.Replier
}

// Answer tells the broker, and so the sender of the reply, whether the reply
// could be read. It never blocks.
func (m *Reply) Answer(err error) {
	if err != nil {
		m.replier.Reply(wire.RespSystemError, "process reply message fail: "+err.Error(), nil, nil)
		return
	}
	m.replier.Reply(wire.RespSuccess, "", nil, nil)
}

// ExpectReply makes ready for the reply with a correlation id. The caller must
// end with [ExpectedReply.Cancel], unless it has got the reply.
func (r *Runtime) ExpectReply(id string) *ExpectedReply {
	e := &ExpectedReply{r: r, id: id, ch: make(chan *Reply, 1)}
	w := &r.replies
	w.mu.Lock()
	if w.waiting == nil {
		w.waiting = make(map[string]*ExpectedReply)
	}
	w.waiting[id] = e
	w.mu.Unlock()
	return e
}

// C gets the reply.
func (e *ExpectedReply) C() <-chan *Reply { return e.ch }

// Cancel stops waiting. False means that it is too late: the reply is in C.
func (e *ExpectedReply) Cancel() bool { return e.r.replies.take(e.id) == e }

// take removes who waits for a reply; it is nil if nobody does.
func (w *replies) take(id string) *ExpectedReply {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.waiting[id]
	delete(w.waiting, id)
	return e
}

// serveReply gives a reply to whoever waits for it. One that nobody waits for
// any more is no fault of the broker or of the sender: it is answered as Java
// clients do.
func (r *Runtime) serveReply(q *remoting.Request) error {
	m := &Reply{Arrived: time.Now()}
	if err := m.Head.DecodeExt(q.Frame()); err != nil {
		return err
	}
	id := wire.Properties(m.Head.Properties).Text(wire.PropCorrelationID)
	if id == "" {
		return errors.New("process reply message fail: the reply has no " + wire.PropCorrelationID)
	}
	e := r.replies.take(id)
	if e == nil {
		r.cfg.Logger.Debug("nobody waits for this reply, it is late or answers twice", "correlationId", id, "addr", q.Conn().Remote())
		q.Reply(wire.RespSuccess, "", nil, nil)
		return nil
	}
	m.Body = append(m.Body, q.Frame().Body...)
	m.replier = q.Replier()
	e.ch <- m
	return nil
}
