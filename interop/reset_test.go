//go:build interop

package interop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/admin"
	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/internal/bridge"
	"github.com/gorocketmq/rocketmq/internal/wire"
	"github.com/gorocketmq/rocketmq/producer"
	"github.com/gorocketmq/rocketmq/selector"
)

// resets has mqadmin of a version move a group with one member: back while the
// member is there, and back and forwards while it is not. Which way that goes
// is the broker's affair: 5.3 and ours tell the next pull, 4.9 the members.
func resets(t *testing.T, c *cluster, who, version string) {
	g := newGroup(t, c, "resets of "+who+" with "+version)
	part := func(mode string) {
		g.send(mode, func(i int) (*rocketmq.Message, []producer.SendOption) {
			if i == 2*queues {
				return nil, nil
			}
			return g.message(mode, i), nil
		})
	}
	want := map[string]int{}
	expect := func(what string) {
		t.Helper()
		g.until(what, func(calls []delivery) bool {
			got := map[string]int{}
			for _, c := range calls {
				mode, _, _ := strings.Cut(c.key(), "-")
				got[mode]++
			}
			for mode, n := range want {
				if got[mode] < n*2*queues {
					return false
				}
			}
			return true
		})
		for _, c := range g.all() {
			mode, _, _ := strings.Cut(c.key(), "-")
			if want[mode] == 0 {
				t.Errorf("%s: %s was handled, which was to be skipped", what, c.key())
			}
		}
	}
	reset := func(to string, extra ...string) {
		t.Helper()
		out := mqadmin(t, version, append([]string{"resetOffsetByTime", "-n", c.namesrv, "-g", g.name, "-t", g.sender.topic, "-s", to}, extra...)...)
		rows := 0
		for line := range strings.Lines(out) {
			if strings.Contains(line, brokerName) {
				rows++
			}
		}
		if rows < queues {
			t.Errorf("resetOffsetByTime shows %d queues, want %d:\n%s", rows, queues, out)
		}
	}

	part("old")
	time.Sleep(2 * time.Second) // 4.9 takes the message that is nearest, be it before or after
	between := fmt.Sprint(time.Now().UnixMilli())
	time.Sleep(5 * time.Millisecond) // store times are whole milliseconds
	part("new")
	m := g.join(who)
	want["old"], want["new"] = 1, 1
	expect("before any reset")
	if who == us { // a broker that pushes needs an offset of every queue
		g.committed(c, 4*queues)
	}

	reset(between)
	want["new"] = 2
	expect("reset back, online")
	g.leave(m)

	reset(between)
	m = g.join(who)
	want["new"] = 3
	expect("reset back, offline")
	g.leave(m)

	part("skipped")
	time.Sleep(5 * time.Millisecond)
	reset("now")
	part("last")
	g.join(who)
	want["last"] = 1
	expect("reset forwards, offline")

	// Nothing came more often than its resets: what was handled twice by a
	// member that left in between is not the reset's doing, and there is none.
	got := map[string]int{}
	for _, c := range g.all() {
		mode, _, _ := strings.Cut(c.key(), "-")
		got[mode]++
	}
	for mode, n := range want {
		if got[mode] != n*2*queues {
			t.Errorf("%d calls for messages %q, want %d", got[mode], mode, n*2*queues)
		}
	}
	pairing("mqadmin "+version+" resetOffsetByTime", c.name, "%s with %s", g.counts(), who)
}

// committed waits until a group has committed so many offsets in all.
func (g *group) committed(c *cluster, want int64) {
	g.t.Helper()
	sum := int64(0)
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		sum = 0
		for q := range int32(queues) {
			f, err := bridge.Of(g.sender.client).Runtime.Call(g.t.Context(), c.broker, &wire.Command{
				Code: wire.ReqQueryConsumerOffset, Ext: &wire.QueryOffsetRequest{Group: g.name, Topic: g.sender.topic, QueueID: q},
			})
			var h wire.OffsetResponse
			if err == nil {
				err = h.DecodeExt(f)
			}
			if err != nil {
				g.t.Fatal(err)
			}
			sum += h.Offset
		}
		if sum == want {
			return
		}
	}
	g.t.Fatalf("group %s has committed %d of %d", g.name, sum, want)
}

// deadLettersAgain has a member of ours bury messages, and our administration
// send them again.
func deadLettersAgain(t *testing.T, c *cluster) {
	s := newSender(t, c, "DeadAgain")
	c.makeTopic(t, s.topic)
	type call struct {
		key, origin, offset string
		attempt             int
	}
	calls := make(chan call, 100)
	well := make(chan struct{})
	p, err := consumer.NewPush(s.client, "dead_again", consumer.StartFrom(rocketmq.Earliest()),
		consumer.Subscribe(s.topic, selector.All, consumer.Each(func(_ context.Context, m *rocketmq.MessageView) error {
			calls <- call{m.Keys[0], m.Properties.Get("ORIGIN_MESSAGE_ID"), m.OffsetID, m.Attempt}
			select {
			case <-well:
				return nil
			default:
				return consumer.DeadLetter(errors.New("not well"))
			}
		})))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- p.Run(context.WithoutCancel(t.Context())) }()
	defer func() {
		closed(t, "consumer", p.Close)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	const n = 40
	s.with(func(ctx context.Context, pr *producer.Producer) {
		for i := range n {
			m := s.message("dead", i)
			r, err := pr.Send(ctx, m)
			s.took("dead", m, r, err)
		}
	})
	next := func() call {
		t.Helper()
		select {
		case c := <-calls:
			return c
		case <-time.After(patience):
			t.Fatalf("no call in %v", patience)
			panic("unreachable")
		}
	}
	first := map[string]call{}
	for range n {
		c := next()
		first[c.key] = c
	}
	close(well)
	a := admin.New(s.client)
	var sent []admin.ResendResult
	for end := time.Now().Add(patience); len(sent) < n && time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		got, err := a.Resend(t.Context(), "dead_again")
		if err != nil && !errors.Is(err, rocketmq.ErrTopicNotFound) {
			t.Fatal(err)
		}
		sent = append(sent, got...)
	}
	var keys []string
	for range sent {
		again := next()
		keys = append(keys, again.key)
		if was := first[again.key]; again.attempt != 1 || again.origin != was.offset {
			t.Errorf("%s came again with attempt %d and origin %s, want 1 and %s", again.key, again.attempt, again.origin, was.offset)
		}
	}
	slices.Sort(keys)
	if len(slices.Compact(keys)) != n {
		t.Errorf("%d dead letters came again, want %d", len(slices.Compact(keys)), n)
	}
	pairing("our administration", c.name, "dead letters sent again %d of %d", len(sent), n)
}
