//go:build interop

package interop

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/producer"
	"github.com/gorocketmq/rocketmq/selector"
)

const (
	us         = "our consumer"
	officialGo = "official go client"
	java       = "java " // and a version
)

// groups runs what consumer groups do on a cluster, with the Java clients of
// the versions. Most of it is waiting, so all runs at once.
func groups(t *testing.T, c *cluster, versions []string) {
	var javas []string
	for _, v := range versions {
		javas = append(javas, java+v)
	}
	alone, sharing := append([]string{us}, javas[:1]...), javas[:1]
	if !c.apache { // our client on our broker is tested elsewhere
		alone, sharing = javas, javas
		t.Run("retries of "+officialGo, func(t *testing.T) {
			t.Parallel()
			retries(t, c, officialGo)
		})
	}
	for _, who := range alone {
		t.Run("retries of "+who, func(t *testing.T) {
			t.Parallel()
			retries(t, c, who)
		})
		t.Run("order of "+who, func(t *testing.T) {
			t.Parallel()
			inOrder(t, c, who)
		})
	}
	for i, v := range versions {
		if i == 0 || !c.apache {
			t.Run("resets with mqadmin "+v, func(t *testing.T) {
				t.Parallel()
				resets(t, c, us, v)
			})
		}
	}
	if !c.apache {
		t.Run("resets of "+javas[0], func(t *testing.T) {
			t.Parallel()
			resets(t, c, javas[0], versions[0])
		})
	}
	t.Run("dead letters again", func(t *testing.T) {
		t.Parallel()
		deadLettersAgain(t, c)
	})
	for _, who := range sharing {
		t.Run("ordered group with "+who, func(t *testing.T) {
			t.Parallel()
			orderedGroup(t, c, who)
		})
	}
	if len(javas) > 1 {
		t.Run("mixed group", func(t *testing.T) {
			t.Parallel()
			mixedGroup(t, c, javas)
		})
	}
}

// grouped are the versions whose clients are in groups on a broker of a
// version, "" for ours. The clients of 5.5 are as those of 5.3.
func grouped(broker string) (out []string) {
	for _, v := range versions {
		if v != "5.5.0" && (broker == "" || v <= broker) {
			out = append(out, v)
		}
	}
	return out
}

// A group is a topic, messages that say what is to become of them (see
// java/Consume.java), and members that do it.
type group struct {
	t       *testing.T
	c       *cluster
	name    string
	sender  *sender
	ordered bool
	pop     bool // members receive and acknowledge single messages
	poll    bool // members ask for messages and commit
	most    int  // attempts of a message, 0 for the clients' default

	joined  int
	members []*member // those in the group
	mu      sync.Mutex
	calls   []delivery
}

// member is a consumer of some client.
type member struct {
	name  string
	leave func() // after what it is at
	read  func() // for processes: moves new calls to the group
}

// delivery is one call of a handler.
type delivery struct {
	record
	member     string
	begin, end int64 // microseconds of the machine's clock
	failed     bool
}

func newGroup(t *testing.T, c *cluster, name string) *group {
	t.Helper()
	name = strings.NewReplacer(" ", "_", ".", "_").Replace(name)
	g := &group{t: t, c: c, name: "group_" + name, sender: newSender(t, c, "Group_"+name)}
	c.makeTopic(t, g.sender.topic)
	return g
}

// message makes a message with properties that say what becomes of it.
func (g *group) message(mode string, i int, plan ...string) *rocketmq.Message {
	m := g.sender.message(mode, i)
	for _, p := range plan {
		name, value, _ := strings.Cut(p, "=")
		m.Properties[name] = value
	}
	return m
}

// send sends messages that next makes until it has no more.
func (g *group) send(mode string, next func(i int) (*rocketmq.Message, []producer.SendOption)) {
	g.t.Helper()
	g.sender.with(func(ctx context.Context, p *producer.Producer) {
		for i := 0; ; i++ {
			m, opts := next(i)
			if m == nil {
				return
			}
			r, err := p.Send(ctx, m, opts...)
			g.sender.took(mode, m, r, err)
		}
	})
}

// join starts a member and waits until it says that it runs.
func (g *group) join(who string) *member {
	g.t.Helper()
	g.joined++
	m := &member{name: fmt.Sprint(who, " #", g.joined)}
	topic, retries := g.sender.topic, "-1"
	if g.most > 0 {
		retries = strconv.Itoa(g.most - 1)
	}
	switch {
	case who == us && g.pop:
		g.oursPopping(m)
	case who == us && g.poll:
		g.oursPolling(m)
	case who == us:
		g.ours(m)
	case who == officialGo:
		cmd := exec.Command(goBuild(g.t, "goclient", "."), "-namesrv", g.c.namesrv, "-topic", topic, "-group", g.name, "-consume", "-retries", retries)
		cmd.Dir = newDir(g.t, "go-client")
		cmd.Env = append(os.Environ(), "HOME="+cmd.Dir, "ROCKETMQ_GO_LOG_LEVEL=error")
		g.process(m, cmd)
	case g.poll:
		version := strings.TrimPrefix(who, java)
		g.process(m, javaCommand(javaHome(g.t, "poll-"+version), javaClasses(g.t, version), toolFlags, "Poll", g.c.namesrv, g.name, topic))
	default:
		how, version := "concurrently", strings.TrimPrefix(who, java)
		if g.ordered {
			how = "orderly"
		}
		if g.pop {
			how = "pop"
		}
		g.process(m, javaCommand(javaHome(g.t, "consume-"+version), javaClasses(g.t, version), toolFlags,
			"Consume", g.c.namesrv, g.name, topic, how, retries))
	}
	g.members = append(g.members, m)
	return m
}

// leave has a member leave the group.
func (g *group) leave(m *member) {
	g.members = slices.DeleteFunc(g.members, func(o *member) bool { return o == m })
	m.leave()
	m.read()
}

// process runs a program that does what java/Consume.java does.
func (g *group) process(m *member, cmd *exec.Cmd) {
	g.t.Helper()
	s, _ := startServer(g.t, "consume", "ready", cmd)
	var at int64
	var mu sync.Mutex
	m.read = func() {
		mu.Lock()
		defer mu.Unlock()
		f, err := os.Open(s.log)
		if err != nil {
			g.t.Error(err)
			return
		}
		defer f.Close()
		b, err := io.ReadAll(io.NewSectionReader(f, at, 1<<40))
		if err != nil {
			g.t.Error(err)
			return
		}
		b = b[:bytes.LastIndexByte(b, '\n')+1]
		at += int64(len(b))
		for line := range strings.Lines(string(b)) {
			if text, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "call "); ok {
				g.took(m, parseRecord(g.t, s.log, text))
			}
		}
	}
	m.leave = func() {
		if err := s.stop(); err != nil || !strings.Contains(s.tail(50), "left") {
			g.t.Errorf("%s did not leave the group: %v", m.name, err)
		}
	}
}

var errPlanned = errors.New("planned failure")

// ours runs a member with our client.
func (g *group) ours(m *member) {
	g.t.Helper()
	cl, err := rocketmq.NewClient(rocketmq.WithNameServers(g.c.namesrv))
	if err != nil {
		g.t.Fatal(err)
	}
	handler := consumer.Each(func(_ context.Context, v *rocketmq.MessageView) error {
		number := func(name string) int {
			n, _ := strconv.Atoi(v.Properties.Get(name))
			return n
		}
		rec := viewRecord(v)
		rec["begin"] = strconv.FormatInt(time.Now().UnixMicro(), 10)
		time.Sleep(time.Duration(number("work")) * time.Millisecond)
		var err error
		switch {
		case number("dead") > 0:
			err = consumer.DeadLetter(errPlanned)
		case v.Attempt > number("fail"):
		case number("level") == 1 && !g.ordered:
			err = consumer.RetryAfter(time.Second, errPlanned)
		default:
			err = errPlanned
		}
		rec["failed"] = strconv.FormatBool(err != nil)
		rec["end"] = strconv.FormatInt(time.Now().UnixMicro(), 10)
		g.took(m, rec)
		return err
	})
	opts := []consumer.Option{consumer.Subscribe(g.sender.topic, selector.All, handler), consumer.StartFrom(rocketmq.Earliest())}
	if g.most > 0 {
		opts = append(opts, consumer.WithMaxAttempts(g.most))
	}
	var c interface {
		Run(ctx context.Context) error
		Ready() <-chan struct{}
		Close(ctx context.Context) error
	}
	if g.ordered {
		c, err = consumer.NewOrdered(cl, g.name, opts...)
	} else {
		c, err = consumer.NewPush(cl, g.name, opts...)
	}
	if err != nil {
		g.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Run(context.WithoutCancel(g.t.Context())) }()
	m.leave = sync.OnceFunc(func() {
		closed(g.t, "consumer", c.Close)
		if err := <-ended; err != nil {
			g.t.Errorf("our consumer: %v", err)
		}
		closed(g.t, "client", cl.Close)
	})
	m.read = func() {}
	g.t.Cleanup(m.leave)
	select {
	case <-c.Ready():
	case <-time.After(patience):
		g.t.Fatalf("our consumer is not ready after %v", patience)
	}
}

func (g *group) took(m *member, rec record) {
	cl := delivery{record: rec, member: m.name, failed: rec["failed"] == "true"}
	cl.begin, cl.end = rec.number(g.t, "begin"), rec.number(g.t, "end")
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls = append(g.calls, cl)
}

// all are the calls that have ended so far, sorted by their begin.
func (g *group) all() []delivery {
	for _, m := range g.members {
		m.read()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	calls := slices.Clone(g.calls)
	slices.SortStableFunc(calls, func(a, b delivery) int { return int(a.begin - b.begin) })
	return calls
}

// until waits until the calls are as wanted.
func (g *group) until(what string, ok func([]delivery) bool) {
	g.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if ok(g.all()) {
			return
		}
	}
	g.t.Fatalf("%s: not in %v; %s", what, patience, g.counts())
}

// handled waits until every message that was sent had a call that did not fail.
func (g *group) handled() {
	g.t.Helper()
	g.until("all messages handled", func(calls []delivery) bool {
		done := make(map[string]bool)
		for _, c := range calls {
			if !c.failed {
				done[c.key()] = true
			}
		}
		return len(done) == len(g.sender.sent)
	})
}

// counts says how many messages there are and who has handled them.
func (g *group) counts() string {
	by, names := make(map[string]int), []string(nil)
	calls := g.all()
	keys := make(map[string]bool)
	for _, c := range calls {
		if by[c.member]++; by[c.member] == 1 {
			names = append(names, c.member)
		}
		keys[c.key()] = true
	}
	slices.Sort(names)
	parts := make([]string, len(names))
	for i, n := range names {
		parts[i] = fmt.Sprint(n, " ", by[n])
	}
	return fmt.Sprintf("sent %d received %d calls %d (%s)", len(g.sender.sent), len(keys), len(calls), strings.Join(parts, ", "))
}

// unchanged are the faults of what a delivery, of whichever attempt, says about
// the message that was sent.
func unchanged(sent, got record) (faults []string) {
	for _, name := range []string{"topic", "tag", "keys", "sharding", "size", "sha", "id"} {
		if got[name] != sent[name] {
			faults = append(faults, fmt.Sprintf("%s: %s sent %q, received %q", sent.key(), name, sent[name], got[name]))
		}
	}
	if want, have := sent.user(), got.user(); fmt.Sprint(want) != fmt.Sprint(have) {
		faults = append(faults, fmt.Sprintf("%s: properties sent %q, received %q", sent.key(), want, have))
	}
	return faults
}

// control marks pairings with Apache on both ends.
func (g *group) control(who string) string {
	if g.c.apache && who != us {
		return " (control)"
	}
	return ""
}
