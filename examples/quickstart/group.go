package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/selector"
)

// groupSize is how many members the group has.
const groupSize = 2

// group is the consumers of a run.
type group struct {
	*load
	name    string
	members []*member
}

// member is one consumer, on a client of its own as if in another process.
type member struct {
	client *rocketmq.Client
	push   *consumer.Push // nil: not running yet; so are the fields below
	cancel context.CancelFunc
	ended  chan struct{} // closed when Run has returned
	err    error         // of Run; valid once ended is closed
}

// start brings up one member after the other and waits until the first has
// consumed the first message and the queues are shared out among all: a queue
// that changes hands while messages flow is where duplicates come from.
func (g *group) start(ctx context.Context) error {
	for range groupSize {
		cl, err := rocketmq.NewClient(g.opts...)
		if err != nil {
			return err
		}
		m := &member{client: cl}
		g.members = append(g.members, m)
		if err := g.join(ctx, m); err != nil {
			return err
		}
		if err := g.wait(ctx, g.first.done, "the first message"); err != nil {
			return err
		}
	}
	return g.balance(ctx)
}

// join has a member take part and waits until it has its first share of the
// queues. A cluster that has just created the topic may not tell of it at once.
func (g *group) join(ctx context.Context, m *member) error {
	limit := time.Now().Add(g.patience)
	for {
		if err := g.run(ctx, m); err != nil {
			return err
		}
		select {
		case <-m.push.Ready():
			return nil
		case <-m.ended:
			if !errors.Is(m.err, rocketmq.ErrTopicNotFound) || time.Now().After(limit) {
				return fmt.Errorf("consumer: %w", m.err)
			}
			m.err = nil
		case <-time.After(time.Until(limit)):
			return fmt.Errorf("no share of the queues within %s", g.patience)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// run starts the member's consumer.
func (g *group) run(ctx context.Context, m *member) error {
	c, err := consumer.NewPush(m.client, g.name,
		consumer.Subscribe(g.topic, selector.All, g.handler(), consumer.Batch(32)),
		consumer.StartFrom(rocketmq.Earliest()),
	)
	if err != nil {
		return err
	}
	ctx, m.cancel = context.WithCancel(ctx)
	ended := make(chan struct{})
	m.push, m.ended = c, ended
	go func() {
		defer close(ended)
		m.err = c.Run(ctx)
	}()
	return nil
}

// stop ends all members; each hands in its offsets before.
func (g *group) stop(ctx context.Context) error {
	var errs []error
	for _, m := range g.members {
		if m.push != nil {
			m.cancel()
		}
	}
	for _, m := range g.members {
		if m.push != nil {
			<-m.ended
			errs = append(errs, m.err)
		}
		errs = append(errs, m.client.Close(ctx))
	}
	return errors.Join(errs...)
}

// handler checks and counts messages. It never fails: what is wrong with a
// message stays wrong.
func (g *group) handler() consumer.Handler {
	scratch := sync.Pool{New: func() any { return new([]byte) }}
	return consumer.HandlerFunc(func(_ context.Context, msgs []*rocketmq.MessageView) error {
		buf := scratch.Get().(*[]byte)
		defer scratch.Put(buf)
		for _, m := range msgs {
			var seq int
			var err error
			seq, *buf, err = checkBody(*buf, m.Body, g.id, g.n, g.size)
			switch {
			case err == nil:
				g.tally.received(seq)
			case errors.Is(err, errAltered):
				g.tally.altered.Add(1)
			case len(m.Body) >= 8 && binary.BigEndian.Uint64(m.Body) == g.probe:
				g.first.now()
			}
		}
		return nil
	})
}

// wait waits for an event, but not for ever.
func (g *group) wait(ctx context.Context, event <-chan struct{}, what string) error {
	select {
	case <-event:
		return nil
	case <-time.After(g.patience):
		return fmt.Errorf("no %s within %s", what, g.patience)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// balance waits until each queue has exactly one owner, who reads it. Members
// learn of each other one after the other, and the one who takes a queue over
// gives the one before a moment to commit.
func (g *group) balance(ctx context.Context) error {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(g.patience)
	for !g.balanced() {
		select {
		case <-tick.C:
		case <-limit:
			return fmt.Errorf("the queues are not shared out after %s", g.patience)
		case <-g.members[0].ended:
			return fmt.Errorf("consumer: %w", g.members[0].err)
		case <-g.members[1].ended:
			return fmt.Errorf("consumer: %w", g.members[1].err)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func (g *group) balanced() bool {
	owned, busy := map[rocketmq.Queue]bool{}, 0
	for _, m := range g.members {
		has := 0
		for _, q := range m.push.Health().Queues {
			if q.Queue.Topic != g.topic {
				continue // the group's retry topic
			}
			if owned[q.Queue] || q.State == "taking over" {
				return false
			}
			owned[q.Queue] = true
			has++
		}
		busy += min(has, 1)
	}
	return busy == min(len(owned), len(g.members)) // of one queue, one has nothing
}
