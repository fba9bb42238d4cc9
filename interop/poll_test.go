//go:build interop

package interop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/producer"
	"github.com/gorocketmq/rocketmq/selector"
)

// pollVersion of Apache RocketMQ is what consumers that are asked for messages are
// tried with.
const pollVersion = "5.3.3"

// polls has our LitePull share a group with Java's, and our bare pull read a topic.
func polls(t *testing.T, version string, c *cluster) {
	t.Run("one group", func(t *testing.T) {
		t.Parallel()
		pollShared(t, version, c)
	})
	t.Run("pull", func(t *testing.T) {
		t.Parallel()
		pullBare(t, c)
	})
}

// pollShared has both poll and commit, while one leaves and comes back, and the
// other leaves.
func pollShared(t *testing.T, version string, c *cluster) {
	g := newGroup(t, c, "poll of both")
	g.poll = true
	theirs, ours := g.join(java+version), g.join(us)
	g.settle("joining")
	g.load("steady", nil)
	g.load("java leaves", theirs)
	g.join(java + version)
	g.settle("java again")
	g.load("ours leaves", ours)
	g.leave(g.members[0])
	pairing(c.name, "our lite pull and java "+version+" lite pull", "%s", g.checkShared(ours))
}

// oursPolling runs a member with our LitePull.
func (g *group) oursPolling(m *member) {
	g.t.Helper()
	cl, err := rocketmq.NewClient(rocketmq.WithNameServers(g.c.namesrv))
	if err != nil {
		g.t.Fatal(err)
	}
	l, err := consumer.NewLitePull(cl, g.name, consumer.SubscribeTo(g.sender.topic, selector.All),
		consumer.StartFrom(rocketmq.Earliest()), consumer.WithManualCommit())
	if err != nil {
		g.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(g.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- g.pollOurs(ctx, m, l) }()
	m.leave = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			g.t.Errorf("our lite pull: %v", err)
		}
		closed(g.t, "lite pull", l.Close)
		closed(g.t, "client", cl.Close)
	})
	m.read = func() {}
	g.t.Cleanup(m.leave)
	ready, end := context.WithTimeout(ctx, patience)
	defer end()
	if err := l.Ready(ready); err != nil {
		g.t.Fatalf("our lite pull is not ready after %v: %v", patience, err)
	}
}

func (g *group) pollOurs(ctx context.Context, m *member, l *consumer.LitePull) error {
	for {
		msgs, err := l.Poll(ctx)
		if err != nil {
			return err
		}
		for _, v := range msgs {
			rec := viewRecord(v)
			rec["begin"] = strconv.FormatInt(time.Now().UnixMicro(), 10)
			work, _ := strconv.Atoi(v.Properties.Get("work"))
			time.Sleep(time.Duration(work) * time.Millisecond)
			rec["failed"], rec["end"] = "false", strconv.FormatInt(time.Now().UnixMicro(), 10)
			g.took(m, rec)
		}
		// What was handed out is to be committed when we are told to leave, too.
		err = l.Commit(context.WithoutCancel(ctx), msgs[0].Queue)
		if err != nil && !errors.Is(err, rocketmq.ErrRevoked) {
			return err
		}
	}
}

// pullBare reads all queues of a topic by offset, waits for a message, and keeps
// offsets for a group that nobody has joined.
func pullBare(t *testing.T, c *cluster) {
	const n = 500
	s := newSender(t, c, "Pull_bare")
	c.makeTopic(t, s.topic)
	s.with(func(ctx context.Context, p *producer.Producer) {
		for i := range n {
			m := s.message("pull", i)
			r, err := p.Send(ctx, m)
			s.took("pull", m, r, err)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	p, err := consumer.NewPull(s.client, "group_pull_bare")
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]record)
	for id := range queues {
		q := rocketmq.Queue{Topic: s.topic, Broker: brokerName, ID: id}
		for _, r := range pullQueue(ctx, t, p, q) {
			got[r.key()] = r
		}
	}
	var faults []string
	for _, sent := range s.sent {
		r := got[sent.key()]
		if r == nil || r["offset"] != sent["offset"] || r["queue"] != sent["queue"] {
			faults = append(faults, fmt.Sprintf("%s: not where it was sent to: %v", sent.key(), r))
			continue
		}
		faults = append(faults, unchanged(sent, r)...)
	}
	line := fmt.Sprintf("sent %d received %d altered %d", n, len(got), len(faults))
	if len(faults) > 0 || len(got) != n {
		t.Fatalf("%s\n%v", line, faults[:min(20, len(faults))])
	}
	pairing(c.name, "our bare pull", "%s", line)
}

// pullQueue reads a queue to its end, and then what comes.
func pullQueue(ctx context.Context, t *testing.T, p *consumer.Pull, q rocketmq.Queue) (all []record) {
	t.Helper()
	low, high, err := p.Range(ctx, q)
	if err != nil || low != 0 {
		t.Fatalf("range of %s: %d, %d, %v", q, low, high, err)
	}
	var first time.Time
	for at := low; at < high; {
		page, err := p.Pull(ctx, consumer.Request{Queue: q, Offset: at, Max: 20})
		if err != nil || page.Status != consumer.PullFound || page.Max != high || len(page.Messages) == 0 {
			t.Fatalf("pull of %s from %d: %+v, %v", q, at, page, err)
		}
		for _, m := range page.Messages {
			if len(all) == 0 {
				first = m.StoredAt
			}
			all = append(all, viewRecord(m))
		}
		at = page.Next
	}
	wait := time.Duration(0)
	if q.ID == 0 {
		wait = 300 * time.Millisecond // Apache looks every 5 s
	}
	page, err := p.Pull(ctx, consumer.Request{Queue: q, Offset: high, Wait: wait})
	if err != nil || page.Status != consumer.PullNoNew || page.Next != high {
		t.Fatalf("pull at the end of %s: %+v, %v", q, page, err)
	}
	page, err = p.Pull(ctx, consumer.Request{Queue: q, Offset: high + 100})
	if !errors.Is(err, rocketmq.ErrOffset) || page.Next != high {
		t.Fatalf("pull behind the end of %s: %+v, %v", q, page, err)
	}
	if off, err := p.SearchOffset(ctx, q, first); err != nil || off != 0 {
		t.Fatalf("offset of the first message's time in %s: %d, %v", q, off, err)
	}
	if off, found, err := p.Committed(ctx, q); err != nil || found {
		t.Fatalf("offset of a new group in %s: %d, %t, %v", q, off, found, err)
	}
	var seen []int64
	for _, off := range []int64{high, 1} {
		if err := p.Commit(ctx, q, off); err != nil {
			t.Fatal(err)
		}
		at, _, err := p.Committed(ctx, q)
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, at)
	}
	if !slices.Equal(seen, []int64{high, 1}) {
		t.Fatalf("committed %d and 1 in %s, the broker says %v", high, q, seen)
	}
	return all
}
