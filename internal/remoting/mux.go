package remoting

import (
	"context"

	"github.com/gorocketmq/rocketmq/internal/run"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Class says where a handler runs.
type Class struct{ w *Workers }

// OnReader is the class of handlers that run on the connection's reader: the
// fastest, with nothing copied or allocated per request, but the connection
// reads nothing until the handler returns. For handlers that never wait, as
// send, pull and offsets.
func OnReader() Class { return Class{} }

// OnWorkers is the class of handlers that run on a bounded pool, with a copy
// of the frame. Requests of one connection then run and are answered in any
// order. If the pool's queue is full the request is answered with code 2 and
// [OVERLOAD].
func OnWorkers(w *Workers) Class { return Class{w} }

// Overloaded is the remark of code 2 when a pool's queue is full, as
// NettyRemotingAbstract words it.
const Overloaded = "[OVERLOAD]system busy, start flow control for a while"

// Mux finds the handler of a request by its code. Register everything before
// the first request comes in; after that a Mux is read only. The zero value
// answers everything with code 3.
type Mux struct {
	m   map[int32]route
	def route
}

type route struct {
	class Class
	h     Handler
}

// Handle registers the handler of a request code. A second one for the same
// code replaces the first.
func (m *Mux) Handle(code int32, class Class, h Handler) {
	if m.m == nil {
		m.m = make(map[int32]route)
	}
	m.m[code] = route{class, h}
}

// Default registers the handler of all codes that have none.
func (m *Mux) Default(class Class, h Handler) { m.def = route{class, h} }

// Serve is a [Handler] that passes the request to the one registered for it.
func (m *Mux) Serve(r *Request) {
	t, ok := m.m[r.f.Code]
	if !ok {
		t = m.def
	}
	switch {
	case t.h == nil:
		notSupported(r)
	case t.class.w == nil:
		t.h(r)
	default:
		t.class.w.run(r, t.h)
	}
}

// Workers is a fixed number of goroutines that run handlers, with a bounded
// queue in front. It may serve any number of connections and servers.
type Workers struct {
	jobs chan job
	g    *run.Group
}

type job struct {
	r *Request
	h Handler
}

// NewWorkers starts n goroutines. queue is how many requests may wait for one
// of them before further ones are refused. They run until [Workers.Close].
func NewWorkers(n, queue int) *Workers {
	w := &Workers{jobs: make(chan job, queue), g: run.NewGroup(context.Background())}
	for range n {
		w.g.Go(w.work)
	}
	return w
}

func (w *Workers) work(ctx context.Context) {
	for {
		select {
		case j := <-w.jobs:
			j.r.run(j.h)
			j.r.c.end()
		case <-ctx.Done():
			return
		}
	}
}

// run queues a copy of the request.
func (w *Workers) run(r *Request, h Handler) {
	late := &Request{c: r.c, f: r.f.Clone(), late: true}
	late.c.begin()
	select {
	case w.jobs <- job{late, h}:
		r.settled = true
	default:
		late.c.end()
		r.Reply(wire.RespSystemBusy, Overloaded, nil, nil)
	}
}

// Close stops the goroutines and waits for the handlers that run. Requests
// still in the queue are not answered: close the servers first.
func (w *Workers) Close() { w.g.Stop() }
