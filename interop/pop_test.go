//go:build interop

package interop

import (
	"context"
	"errors"
	"fmt"
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

// popVersion of Apache RocketMQ is what POP is tried with. 4.9 has none.
const popVersion = "5.3.3"

// invisible is how long our member may take for a message.
const invisible = 8 * time.Second

// popPlans are messages for a consumer that receives and acknowledges each by
// itself, with two attempts at most. Times of waits are those of our member;
// Java's has messages that failed wait for 10 s.
var popPlans = []failing{
	{mode: "fine", n: 200, calls: 1},
	{mode: "once", n: 10, plan: []string{"fail=1"}, calls: 2, wait: invisible},                           // not acknowledged
	{mode: "held", n: 10, plan: []string{"hold=2"}, calls: 1},                                            // held back for longer, twice, then acknowledged
	{mode: "handed back", n: 10, plan: []string{"fail=1", "back=1"}, calls: 2, wait: time.Second},        // made visible sooner
	{mode: "always", n: 3, plan: []string{"fail=99", "back=1"}, calls: 2, wait: time.Second, dead: true}, // never acknowledged
}

// pops has our consumer, and Java's in the POP mode of its push consumer, receive
// from a cluster, each by itself and both in one group.
func pops(t *testing.T, version string, c *cluster) {
	t.Run("ours", func(t *testing.T) {
		t.Parallel()
		popOurs(t, version, c)
	})
	t.Run("java", func(t *testing.T) {
		t.Parallel()
		popJava(t, version, c)
	})
	t.Run("one group", func(t *testing.T) {
		t.Parallel()
		popShared(t, version, c)
	})
}

// popRefused has our consumer meet a broker that knows no POP.
func popRefused(t *testing.T, c *cluster) {
	const topic = "Pop_refused"
	c.makeTopic(t, topic)
	cl, err := rocketmq.NewClient(rocketmq.WithNameServers(c.namesrv))
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, "client", cl.Close)
	s, err := consumer.NewSimple(cl, "pop_refused", consumer.SubscribeTo(topic, selector.All))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := s.Receive(ctx, 1, time.Minute); !errors.Is(err, rocketmq.ErrUnsupported) || !strings.Contains(err.Error(), "5.0 or later") {
		t.Fatalf("our simple consumer: %v, want one that says what it needs", err)
	}
	pairing(c.name, "our simple consumer", "refused as expected 1")
}

// newPopGroup is a group whose members pop.
func newPopGroup(t *testing.T, c *cluster, name string) *group {
	t.Helper()
	g := newGroup(t, c, name)
	g.pop, g.most = true, 2
	return g
}

// sendPlans sends the messages of plans and returns how many calls they are to
// make, and how many dead letters there will be.
func (g *group) sendPlans(plans []failing) (calls, dead int) {
	for _, p := range plans {
		g.send(p.mode, func(i int) (*rocketmq.Message, []producer.SendOption) {
			if i == p.n {
				return nil, nil
			}
			return g.message(p.mode, i, p.plan...), nil
		})
		if calls += p.n * p.calls; p.dead {
			dead += p.n
		}
	}
	return calls, dead
}

func popOurs(t *testing.T, version string, c *cluster) {
	g := newPopGroup(t, c, "pop of "+us)
	calls, dead := g.sendPlans(popPlans)
	m := g.join(us)
	out := mqadmin(t, version, "consumerConnection", "-n", c.namesrv, "-g", g.name)
	contains(t, "consumerConnection", out, "CONSUME_POP")
	contains(t, "consumerConnection", out, g.sender.topic)
	g.until(fmt.Sprint(calls, " calls"), func(all []delivery) bool { return len(all) >= calls })
	letters := "%DLQ%" + g.name
	c.waitRoute(t, letters)
	lying := receiveOurs(t, c, letters, dead)
	g.leave(m)

	faults := append(g.checkPops(popPlans), g.checkPopDead(lying)...)
	line := fmt.Sprintf("%s again %d dead letters %d altered %d", g.counts(), calls-len(g.sender.sent), len(lying), len(faults))
	if len(faults) > 0 || len(g.all()) != calls || len(lying) != dead {
		t.Fatalf("%s, want %d calls and %d dead letters\n%s", line, calls, dead, strings.Join(faults[:min(20, len(faults))], "\n"))
	}
	pairing(c.name, "our simple consumer", "%s", line)
}

// popJava is the same for what Java's client has: a message that fails is received
// again after 10 s.
func popJava(t *testing.T, version string, c *cluster) {
	g := newPopGroup(t, c, "pop of java")
	g.most = 0
	g.popMode(version)
	plans := []failing{{mode: "fine", n: 200, calls: 1}, {mode: "once", n: 10, plan: []string{"fail=1"}, calls: 2, wait: 10 * time.Second}}
	calls, _ := g.sendPlans(plans)
	m := g.join(java + version)
	g.until(fmt.Sprint(calls, " calls"), func(all []delivery) bool { return len(all) >= calls })
	g.leave(m)
	faults := g.checkPops(plans)
	line := fmt.Sprintf("%s again %d altered %d", g.counts(), calls-len(g.sender.sent), len(faults))
	if len(faults) > 0 || len(g.all()) != calls {
		t.Fatalf("%s, want %d calls\n%s", line, calls, strings.Join(faults[:min(20, len(faults))], "\n"))
	}
	pairing(c.name, "java "+version+" pop"+g.control(java), "%s", line)
}

// popShared has both in one group, where each message is received once.
func popShared(t *testing.T, version string, c *cluster) {
	g := newPopGroup(t, c, "pop of both")
	g.most = 0
	g.popMode(version)
	members := []*member{g.join(us), g.join(java + version)}
	plans := []failing{{mode: "first", calls: 1, plan: []string{"work=20"}}, {mode: "fine", n: 400, calls: 1, plan: []string{"work=20"}}}
	g.send("first", func(i int) (*rocketmq.Message, []producer.SendOption) { // until both are at it
		if by := g.byMember(); len(by) == 2 || i == 12_000 {
			return nil, nil
		}
		time.Sleep(10 * time.Millisecond)
		return g.message("first", i, plans[0].plan...), nil
	})
	g.sendPlans(plans[1:])
	calls := len(g.sender.sent)
	g.until(fmt.Sprint(calls, " calls"), func(all []delivery) bool { return len(all) >= calls })
	for _, m := range members {
		g.leave(m)
	}
	faults := g.checkPops(plans)
	if by := g.byMember(); len(by) != 2 {
		faults = append(faults, fmt.Sprintf("not both have received something: %v", by))
	}
	line := fmt.Sprintf("%s altered %d", g.counts(), len(faults))
	if len(faults) > 0 || len(g.all()) != calls {
		t.Fatalf("%s, want %d calls\n%s", line, calls, strings.Join(faults[:min(20, len(faults))], "\n"))
	}
	pairing(c.name, "our simple consumer and java "+version+" pop", "%s", line)
}

// byMember is how many calls each member has had.
func (g *group) byMember() map[string]int {
	by := make(map[string]int)
	for _, d := range g.all() {
		by[d.member]++
	}
	return by
}

// popMode has the broker tell Java's members to pop, all queues each.
func (g *group) popMode(version string) {
	g.t.Helper()
	out := mqadmin(g.t, version, "setConsumeMode", "-n", g.c.namesrv, "-b", g.c.broker, "-t", g.sender.topic, "-g", g.name, "-m", "POP", "-q", "0")
	contains(g.t, "setConsumeMode", out, "success")
}

// checkPops compares each call with the message and with its plan.
func (g *group) checkPops(plans []failing) (faults []string) {
	by := make(map[string][]delivery)
	for _, c := range g.all() {
		by[c.key()] = append(by[c.key()], c)
	}
	for _, s := range g.sender.sent {
		p := plans[slices.IndexFunc(plans, func(p failing) bool { return p.mode == s["mode"] })]
		calls := by[s.key()]
		if delete(by, s.key()); len(calls) != p.calls {
			faults = append(faults, fmt.Sprintf("%s: %d calls, want %d", s.key(), len(calls), p.calls))
			continue
		}
		for i, c := range calls {
			faults = append(faults, unchanged(s, c.record)...)
			if c.record["attempts"] != strconv.Itoa(i) || c.failed != (i < p.calls-1 || p.dead) {
				faults = append(faults, fmt.Sprintf("%s: call %d has %s attempts before it, failed: %v", s.key(), i, c.record["attempts"], c.failed))
			}
			if i == 0 {
				if c.record["offsetId"] != s["offsetId"] || c.record["queue"] != s["queue"] || c.record["offset"] != s["offset"] {
					faults = append(faults, fmt.Sprintf("%s: sent to %s/%s %s, received from %s/%s %s", s.key(), s["queue"], s["offset"], s["offsetId"], c.record["queue"], c.record["offset"], c.record["offsetId"]))
				}
				continue
			}
			// The broker counts from before the message was on its way. Our member
			// knows until when it is its own.
			before := calls[i-1]
			rest, least := time.Duration(c.begin-before.begin)*time.Microsecond, p.wait*3/4
			if before.record["until"] != "" {
				least = time.Duration(before.number(g.t, "until")-before.begin) * time.Microsecond
			}
			if rest < least-50*time.Millisecond || rest > p.wait+patience {
				faults = append(faults, fmt.Sprintf("%s: call %d came after %v, want %v", s.key(), i, rest, p.wait))
			}
		}
	}
	for key := range by {
		faults = append(faults, key+": received but never sent")
	}
	return faults
}

// checkPopDead compares dead letters with the messages. Their original topic, as
// brokers have it, is that of the group's second attempts.
func (g *group) checkPopDead(lying []record) (faults []string) {
	by := make(map[string]record)
	for _, s := range g.sender.sent {
		by[s.key()] = s
	}
	for _, r := range lying {
		s := by[r.key()]
		if s == nil || s["mode"] != "always" {
			faults = append(faults, fmt.Sprintf("%q is not to be a dead letter, or is one twice", r.key()))
			continue
		}
		delete(by, r.key())
		letter := original(r)
		if want := "%RETRY%" + g.name + "_" + s["topic"]; letter["topic"] != want {
			faults = append(faults, fmt.Sprintf("%s: a dead letter of %q, want %q", s.key(), letter["topic"], want))
		}
		letter["topic"] = s["topic"]
		faults = append(faults, unchanged(s, letter)...)
	}
	return faults
}

// oursPopping runs a member with our simple consumer, with two goroutines that
// receive and one for each message that needs longer.
func (g *group) oursPopping(m *member) {
	g.t.Helper()
	cl, err := rocketmq.NewClient(rocketmq.WithNameServers(g.c.namesrv))
	if err != nil {
		g.t.Fatal(err)
	}
	opts := []consumer.Option{consumer.SubscribeTo(g.sender.topic, selector.All), consumer.StartFrom(rocketmq.Earliest())}
	if g.most > 0 {
		opts = append(opts, consumer.WithMaxAttempts(g.most))
	}
	s, err := consumer.NewSimple(cl, g.name, opts...)
	if err != nil {
		g.t.Fatal(err)
	}
	ctx := context.WithoutCancel(g.t.Context())
	limit := invisible
	if g.most == 0 {
		limit *= 20
	}
	var wg sync.WaitGroup
	first := make(chan struct{}, 1)
	for range 2 {
		wg.Go(func() {
			for {
				got, err := s.Receive(ctx, 16, limit)
				if errors.Is(err, rocketmq.ErrClosed) {
					return
				}
				if err != nil {
					g.t.Errorf("our simple consumer: %v", err)
					return
				}
				select {
				case first <- struct{}{}:
				default:
				}
				var fine []*consumer.Received
				for _, r := range got {
					if r.Properties.Get("fail") == "" && r.Properties.Get("hold") == "" {
						fine = append(fine, r)
						g.tookReceived(m, r, func(r *consumer.Received) error {
							time.Sleep(time.Duration(planned(r, "work")) * time.Millisecond)
							return nil
						})
						continue
					}
					wg.Go(func() { g.tookReceived(m, r, g.plan) })
				}
				if err := s.AckAll(ctx, fine...); err != nil {
					g.t.Errorf("our simple consumer: %v", err)
				}
			}
		})
	}
	m.leave = sync.OnceFunc(func() {
		closed(g.t, "simple consumer", s.Close)
		wg.Wait()
		closed(g.t, "client", cl.Close)
	})
	m.read = func() {}
	g.t.Cleanup(m.leave)
	if len(g.sender.sent) > 0 {
		<-first
	}
}

// planned is a number that a message says.
func planned(r *consumer.Received, name string) int {
	n, _ := strconv.Atoi(r.Properties.Get(name))
	return n
}

// plan does with a message what it says: an error means that it comes again.
func (g *group) plan(r *consumer.Received) error {
	ctx := context.WithoutCancel(g.t.Context())
	for range planned(r, "hold") {
		time.Sleep(5 * invisible / 8)
		if err := r.Extend(ctx, invisible); err != nil {
			g.t.Errorf("holding %s back: %v", r.Keys[0], err)
		}
	}
	switch {
	case r.Attempt > planned(r, "fail"):
		if err := r.Ack(ctx); err != nil {
			g.t.Errorf("acknowledging %s: %v", r.Keys[0], err)
		}
		return nil
	case planned(r, "back") > 0:
		if err := r.Extend(ctx, time.Second); err != nil {
			g.t.Errorf("handing %s back: %v", r.Keys[0], err)
		}
	}
	return errPlanned
}

// tookReceived deals with a message and notes it.
func (g *group) tookReceived(m *member, r *consumer.Received, plan func(*consumer.Received) error) {
	rec := viewRecord(r.MessageView)
	rec["begin"] = strconv.FormatInt(time.Now().UnixMicro(), 10)
	rec["failed"] = strconv.FormatBool(plan(r) != nil)
	rec["until"] = strconv.FormatInt(r.Deadline().UnixMicro(), 10)
	rec["end"] = strconv.FormatInt(time.Now().UnixMicro(), 10)
	g.took(m, rec)
}
