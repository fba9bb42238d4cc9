package consume

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/gorocketmq/rocketmq"
)

// EventKind is what happened to queues.
type EventKind uint8

// The kinds.
const (
	Assigned EventKind = iota // ours, and no message of them was handed out yet
	Revoked                   // no handler runs any more; offset and lock follow
	Lost                      // not ours any more, and a handler may still run
)

// Event is told to the application's listener.
type Event struct {
	Kind   EventKind
	Topic  string
	Queues []rocketmq.Queue // sorted
}

// listener calls the application's function for one event after the other, in the
// order in which they were posted, on a goroutine that is there when there is
// something to do. Those who must not go on before it has returned wait for it;
// nobody holds a lock meanwhile.
type listener struct {
	f func(ctx context.Context, e Event)

	mu   sync.Mutex // guards all below
	list []notice
	busy bool
}

type notice struct {
	e    Event
	done chan struct{}
}

// post adds an event. The channel is closed when the function has returned.
func (c *Consumer) post(e Event) <-chan struct{} {
	l := &c.listener
	n := notice{e, make(chan struct{})}
	l.mu.Lock()
	l.list = append(l.list, n)
	start := !l.busy
	l.busy = true
	l.mu.Unlock()
	if start && !c.group.Go(c.tellAll) {
		l.mu.Lock()
		l.list, l.busy = nil, false
		l.mu.Unlock()
		close(n.done) // all has ended
	}
	return n.done
}

func (c *Consumer) tellAll(ctx context.Context) {
	l := &c.listener
	for {
		l.mu.Lock()
		if len(l.list) == 0 {
			l.busy = false
			l.mu.Unlock()
			return
		}
		n := l.list[0]
		l.list = l.list[1:]
		l.mu.Unlock()
		c.tellOne(ctx, n)
	}
}

func (c *Consumer) tellOne(ctx context.Context, n notice) {
	defer close(n.done)
	defer func() {
		if v := recover(); v != nil {
			c.log.Error("the rebalance listener panicked", "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
		}
	}()
	c.listener.f(ctx, n.e)
}

// inform tells the listener of queues of one topic and waits until it has
// returned, or ctx ends. Queues that it knows, or of the other kinds does not know, are
// left out.
func (c *Consumer) inform(ctx context.Context, kind EventKind, qs ...*queue) {
	if done := c.mention(kind, qs...); done != nil {
		select {
		case <-done:
		case <-ctx.Done():
		}
	}
}

// mention is inform without waiting.
func (c *Consumer) mention(kind EventKind, qs ...*queue) <-chan struct{} {
	if c.listener.f == nil {
		return nil
	}
	e := Event{Kind: kind}
	for _, q := range qs {
		if q.known.CompareAndSwap(kind != Assigned, kind == Assigned) {
			e.Topic = q.key.Topic
			e.Queues = append(e.Queues, q.key)
		}
	}
	if len(e.Queues) == 0 {
		return nil
	}
	e.Queues = sorted(e.Queues)
	return c.post(e)
}
