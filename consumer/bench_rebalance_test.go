package consumer_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
	"github.com/gorocketmq/rocketmq/rebalance"
	"github.com/gorocketmq/rocketmq/selector"
)

// told says when a strategy was asked.
type told struct {
	rebalance.Strategy
	asked chan struct{}
}

func (s told) Allocate(in rebalance.Input) ([]rocketmq.Queue, error) {
	defer func() { s.asked <- struct{}{} }()
	return s.Strategy.Allocate(in)
}

// A group of two shares out 10,000 queues. "still" is a rebalance that changes
// nothing, which comes every 20 s; "lose" and "gain" are those in which the other
// member comes and goes: there half of the queues are given up with a commit, or
// their offsets are asked for and pulls begin, with the work of the broker's half
// in the figures.
func BenchmarkRebalance10000(b *testing.B) {
	const queues = 10_000
	f := newFake(b)
	f.topic("T", queues)
	other := make(chan bool, 1)
	other <- false
	f.on(wire.ReqGetConsumerListByGroup, func(r *remoting.Request) bool {
		two := <-other
		other <- two
		if !two {
			return false
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		l := wire.ConsumerList{IDs: []string{"999.9.9.9@other"}}
		for _, id := range f.members {
			l.IDs = append(l.IDs, id)
		}
		r.Reply(wire.RespSuccess, "", nil, l.AppendJSON(nil))
		return true
	})
	f.on(wire.ReqPullMessage, func(r *remoting.Request) bool {
		r.Drop() // a long poll without end
		return true
	})
	s := told{rebalance.Averagely(), make(chan struct{}, 100)}
	p, err := consumer.NewPush(f.client(), "g", consumer.WithStrategy(s),
		consumer.Subscribe("T", selector.All, consumer.Each(func(context.Context, *rocketmq.MessageView) error { return nil })))
	require.NoError(b, err)
	ended := make(chan error, 1)
	go func() { ended <- p.Run(context.Background()) }()
	<-p.Ready()
	<-s.asked
	defer func() {
		require.NoError(b, p.Close(context.Background()))
		require.NoError(b, <-ended)
	}()
	owns := func(n int) {
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
			qs := p.Health().Queues
			if len(qs) == n && settled(qs) {
				return
			}
			if time.Now().After(end) {
				b.Fatalf("%d queues, want %d", len(qs), n)
			}
		}
	}
	owns(queues)
	turn := func(two bool) {
		<-other
		other <- two
		f.notify("g")
		<-s.asked
	}
	b.Run("still", func(b *testing.B) {
		for b.Loop() {
			turn(false)
		}
	})
	for _, c := range []struct {
		name      string
		two       bool
		had, have int
	}{{"lose", true, queues, queues / 2}, {"gain", false, queues / 2, queues}} {
		b.Run(c.name, func(b *testing.B) {
			var spent time.Duration
			for b.Loop() {
				turn(!c.two)
				owns(c.had)
				from := cpuTime()
				turn(c.two)
				time.Sleep(500 * time.Millisecond) // what it takes is looked at when it is over
				spent += cpuTime() - from
				owns(c.have)
			}
			b.ReportMetric(spent.Seconds()*1e3/float64(b.N), "cpu-ms/op")
		})
	}
}

func settled(qs []consumer.QueueHealth) bool {
	for _, q := range qs {
		if q.State != "pulling" {
			return false
		}
	}
	return true
}
