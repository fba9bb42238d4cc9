//go:build interop

package interop

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/producer"
	"github.com/gorocketmq/rocketmq/selector"
)

// oursToJava sends in every way our producer has and reads it back with the
// Java consumer of a version.
func oursToJava(t *testing.T, version string, c *cluster) {
	name := strings.ReplaceAll(version, ".", "_")
	s := newSender(t, c, "Ours_"+name)
	c.makeTopic(t, s.topic)
	s.delayed()
	if !c.apache || version != "4.9.7" {
		s.timed()
	}
	s.sync()
	s.async("async")
	s.async("linger", producer.WithLinger(5*time.Millisecond, 256<<10))
	s.oneway()
	s.batch("batch", 200, 0)
	s.batch("large batch", 100, 64<<10)
	s.selected()
	s.compressed("zlib", producer.ZLIB, 9)
	s.compressed("lz4", producer.LZ4, 1)
	s.compressed("zstd", producer.ZSTD, 3)
	s.compressed("none", producer.NoCompression, 0)
	fresh := s.created("OursCreated_" + name)
	if t.Failed() {
		return // the errors say more than what is missing
	}

	got := receiveJava(t, version, c, "ours_"+name, len(s.sent), s.topic, fresh)
	line := sameRecords(t, s.sent, got)
	s.checkDelays(got)
	s.checkTrace(version, c)
	if !t.Failed() {
		pairing("our producer", c.name+" -> java "+version, "%s", line)
		pairing("our trace", c.name+" -> mqadmin "+version, "commands 1 as expected 1")
	}
}

// sender sends with our producer and keeps a record of all messages.
type sender struct {
	t      *testing.T
	topic  string
	client *rocketmq.Client
	sent   []record
	traced producer.Result // of a message whose trace was recorded
}

func newSender(t *testing.T, c *cluster, topic string) *sender {
	t.Helper()
	cl, err := rocketmq.NewClient(rocketmq.WithNameServers(c.namesrv))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closed(t, "client", cl.Close) })
	return &sender{t: t, topic: topic, client: cl}
}

func closed(t *testing.T, what string, f func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := f(ctx); err != nil {
		t.Errorf("closing the %s: %v", what, err)
	}
}

// with runs f with a producer that has these options.
func (s *sender) with(f func(ctx context.Context, p *producer.Producer), opts ...producer.Option) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	p, err := producer.New(s.client, append([]producer.Option{
		producer.WithGroup("ours_producer"), producer.WithTimeout(20*time.Second, 10*time.Second),
	}, opts...)...)
	if err != nil {
		s.t.Fatal(err)
	}
	f(ctx, p)
	closed(s.t, "producer", p.Close)
}

// message makes a message whose first key is its own. It has no sharding key.
func (s *sender) message(mode string, i int) *rocketmq.Message {
	id := strings.ReplaceAll(mode, " ", "-") + "-" + strconv.Itoa(i)
	body := []byte(id)
	for j := range i % 700 {
		body = append(body, byte(i+j))
	}
	return &rocketmq.Message{
		Topic: s.topic, Tag: "t" + strconv.Itoa(i%3), Keys: []string{id, "order" + strconv.Itoa(i)}, Body: body,
		Properties: map[string]string{"origin": "ours " + mode, "gr\u00fc\u00dfe": "\u4f60\u597d \U0001F680 " + id},
	}
}

// took records a message that was sent.
func (s *sender) took(mode string, m *rocketmq.Message, r producer.Result, err error) {
	s.t.Helper()
	if err != nil {
		s.t.Errorf("%s: %v", m.Keys[0], err)
		return
	}
	s.sent = append(s.sent, sentRecord(mode, m, &r))
}

func (s *sender) sync() {
	s.with(func(ctx context.Context, p *producer.Producer) {
		for i := range 100 {
			m := s.message("sync", i)
			switch {
			case i%4 == 0:
				m.ShardingKey = fmt.Sprintf("sh\u00e4rd %d", i)
			case i%4 == 1: // the least there can be
				m.Tag, m.Properties, m.Keys = "", nil, m.Keys[:1]
			case i%4 == 2:
				m.Tag, m.Keys[1] = "t\u00e4g", "schl\u00fcssel"
			}
			r, err := p.Send(ctx, m)
			if s.took("sync", m, r, err); i == 0 && err == nil {
				s.traced = r
			}
		}
	}, producer.WithTrace("")) // closing the producer sends what is left of the trace
}

func (s *sender) async(mode string, opts ...producer.Option) {
	s.with(func(ctx context.Context, p *producer.Producer) {
		var mu sync.Mutex
		for i := range 500 {
			m := s.message(mode, i)
			if i%5 == 0 {
				m.ShardingKey = strconv.Itoa(i % 7)
			}
			p.SendAsync(ctx, m, func(r producer.Result, err error) {
				mu.Lock()
				defer mu.Unlock()
				s.took(mode, m, r, err)
			})
		}
		if err := p.Flush(ctx); err != nil {
			s.t.Errorf("flush: %v", err)
		}
	}, opts...)
}

func (s *sender) oneway() {
	s.with(func(ctx context.Context, p *producer.Producer) {
		for i := range 100 {
			m := s.message("oneway", i)
			if err := p.SendOneway(ctx, m); err != nil {
				s.t.Errorf("%s: %v", m.Keys[0], err)
			}
			s.sent = append(s.sent, sentRecord("oneway", m, nil))
		}
		if err := p.Flush(ctx); err != nil {
			s.t.Errorf("flush: %v", err)
		}
	})
}

// batch sends n messages with bodies of at least so many bytes by one call.
// Those of one request are next to each other.
func (s *sender) batch(mode string, n, size int) {
	s.with(func(ctx context.Context, p *producer.Producer) {
		ms := make([]*rocketmq.Message, n)
		for i := range ms {
			ms[i] = s.message(mode, i)
			ms[i].Body = append(ms[i].Body, make([]byte, size)...)
		}
		rs, err := p.SendBatch(ctx, ms)
		if err != nil || len(rs) != n {
			s.t.Errorf("%s: %d results, %v", mode, len(rs), err)
			return
		}
		requests := 1
		for i, r := range rs {
			s.took(mode, ms[i], r, nil)
			if i > 0 && (r.Queue != rs[i-1].Queue || r.Offset != rs[i-1].Offset+1) {
				requests++
			}
		}
		want := 1
		if n*size > 4<<20 {
			want = 2
		}
		if requests != want {
			s.t.Errorf("%s: %d messages of %d bytes went in %d requests, want %d", mode, n, size, requests, want)
		}
	})
}

// selected uses all selectors. Java says which queue its own selector by hash
// takes for the same key.
func (s *sender) selected() {
	s.with(func(ctx context.Context, p *producer.Producer) {
		all, err := p.Queues(ctx, s.topic)
		if err != nil || len(all) != queues {
			s.t.Errorf("queues %v, %v", all, err)
			return
		}
		send := func(mode string, i int, key string, opt producer.SendOption) (r producer.Result) {
			m := s.message(mode, i)
			m.ShardingKey = key
			r, err := p.Send(ctx, m, opt)
			s.took(mode, m, r, err)
			return r
		}
		roundRobin, random, room := selector.RoundRobin(), selector.Random(), selector.MachineRoom("room")
		turns := make(map[string]int)
		for i := range 4 * queues {
			turns[send("round robin", i, "", producer.Via(roundRobin)).Queue.String()]++
			send("random", i, "", producer.Via(random))
			turns[send("machine room", i, "", producer.Via(room)).Queue.String()]++

			send("hash", i, fmt.Sprintf("customer \u00e9 %d", i), producer.Via(selector.Hash()))
			last := s.sent[len(s.sent)-1]
			last["hash"] = last["queue"]

			want := all[i*3%queues]
			if r := send("function", i, "", producer.Via(selector.QueueFunc(
				func(_ *rocketmq.Message, qs []rocketmq.Queue, _ string) (int, error) {
					return slices.Index(qs, want), nil
				},
			))); r.Queue != want {
				s.t.Errorf("function %d: went to %v, want %v", i, r.Queue, want)
			}
			if r := send("to", i, "", producer.To(want)); r.Queue != want {
				s.t.Errorf("to %d: went to %v, want %v", i, r.Queue, want)
			}
		}
		for _, q := range all {
			if turns[q.String()] != 8 {
				s.t.Errorf("round robin and machine room sent %d messages to %v, want 4 each", turns[q.String()], q)
			}
		}
		if _, err := p.Send(ctx, s.message("to", -1), producer.To(rocketmq.Queue{Broker: brokerName, ID: queues})); !errors.Is(err, rocketmq.ErrNoQueue) {
			s.t.Errorf("to a queue that does not exist: %v, want ErrNoQueue", err)
		}
	})
}

// compressed sends bodies that get shorter and one that does not. What Java
// says about the stored form is compared, too.
func (s *sender) compressed(name string, codec producer.Codec, level int) {
	s.with(func(ctx context.Context, p *producer.Producer) {
		for i := range 4 {
			m := s.message(name, i)
			stored := name
			if i < 3 {
				m.Body = []byte(strings.Repeat("all work and no play ", 1000*(i+1)) + strconv.Itoa(i))
			} else {
				m.Body, stored = noise(20_000), "none"
			}
			r, err := p.Send(ctx, m)
			s.took(name, m, r, err)
			if err == nil {
				s.sent[len(s.sent)-1]["codec"] = stored
			}
		}
	}, producer.WithCompression(codec, level, 4096))
}

// noise are bytes that cannot be compressed.
func noise(n int) []byte {
	b := make([]byte, n)
	x := uint64(88172645463325252)
	for i := range b {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b[i] = byte(x)
	}
	return b
}

// created sends to a topic that the broker makes for it.
func (s *sender) created(topic string) string {
	s.with(func(ctx context.Context, p *producer.Producer) {
		for i := range 4 {
			m := s.message("created", i)
			m.Topic = topic
			r, err := p.Send(ctx, m)
			s.took("created", m, r, err)
		}
	}, producer.WithAutoCreate(4))
	return topic
}

// delayed sends with delay levels. Brokers store such a message a second time
// when it is due, so what its result said about its place does not count, but
// for the queue.
func (s *sender) delayed() {
	s.with(func(ctx context.Context, p *producer.Producer) {
		for i := range 4 {
			m := s.message("delayed", i)
			m.Delay = rocketmq.DelayLevel(1 + i%2)
			r, err := p.Send(ctx, m)
			s.took("delayed", m, r, err)
			if err == nil {
				s.elsewhere()
			}
		}
	})
}

// elsewhere forgets the place of the message sent last.
func (s *sender) elsewhere() {
	last := s.sent[len(s.sent)-1]
	delete(last, "offset")
	delete(last, "offsetId")
}

// timed sends timer messages and recalls every other one. The one that is due
// last is not recalled: when it comes the others would have come.
func (s *sender) timed() {
	s.with(func(ctx context.Context, p *producer.Producer) {
		for i := range 5 {
			m := s.message("timed", i)
			m.Delay = rocketmq.DelayFor(time.Duration(2000+500*i) * time.Millisecond)
			if i == 4 {
				m.Delay = rocketmq.DeliverAt(time.Now().Add(5 * time.Second))
			}
			r, err := p.Send(ctx, m)
			if err == nil && r.RecallHandle == "" {
				s.t.Errorf("%s: no recall handle", m.Keys[0])
			}
			if i%2 == 0 {
				if s.took("timed", m, r, err); err == nil {
					s.elsewhere()
				}
				continue
			}
			if id, err := p.Recall(ctx, s.topic, r.RecallHandle); err != nil || id != r.MessageID {
				s.t.Errorf("recall of %s with id %s: %q, %v", m.Keys[0], r.MessageID, id, err)
			}
		}
	})
}

// checkDelays checks that delayed messages came late, and no others.
func (s *sender) checkDelays(got []record) {
	s.t.Helper()
	levels := map[string]time.Duration{"1": time.Second, "2": 5 * time.Second}
	for _, r := range got {
		late := time.Duration(r.number(s.t, "stored")-r.number(s.t, "born")) * time.Millisecond
		least, most := time.Duration(-50*time.Millisecond), patience // clocks are the same machine's
		if strings.HasPrefix(r.key(), "delayed-") {
			least = levels[r["p.DELAY"]]
			most += least
			if least == 0 {
				s.t.Errorf("%s: delay level %q", r.key(), r["p.DELAY"])
			}
		}
		if strings.HasPrefix(r.key(), "timed-") {
			least, most = time.Second, patience // they are due after 2 s, by a clock of whole seconds
		}
		if late < least || late > most {
			s.t.Errorf("%s: stored %v after it was born, want %v to %v", r.key(), late, least, most)
		}
	}
}

// checkTrace asks mqadmin for the trace of a message.
func (s *sender) checkTrace(version string, c *cluster) {
	s.t.Helper()
	out := mqadmin(s.t, version, "queryMsgTraceById", "-n", c.namesrv, "-i", s.traced.MessageID)
	rows := table(out, "Pub", "ours_producer")
	if len(rows) != 1 || rows[0][len(rows[0])-1] != "success" || !strings.HasSuffix(rows[0][len(rows[0])-2], "ms") {
		s.t.Errorf("queryMsgTraceById of %s does not show one successful send:\n%s", s.traced.MessageID, out)
	}
}

// receiveJava reads topics with the Java consumer of a version until n
// messages have come.
func receiveJava(t *testing.T, version string, c *cluster, group string, n int, topics ...string) []record {
	t.Helper()
	dir := javaHome(t, "receive-"+version)
	file := filepath.Join(dir, "received")
	out, err := output(t, patience, javaCommand(dir, javaClasses(t, version), toolFlags,
		"Receive", append([]string{c.namesrv, group, file, strconv.Itoa(n)}, topics...)...))
	if err != nil {
		t.Fatalf("Receive: %v\n%s", err, quiet(out))
	}
	return readRecords(t, file)
}
