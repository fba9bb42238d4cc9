//go:build interop

package interop

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/producer"
)

// failing are messages of one plan.
type failing struct {
	mode  string
	n     int
	plan  []string
	calls int
	wait  time.Duration // between two calls at least
	dead  bool
}

// plans are messages that fail, with three attempts at most: how many of each,
// and what they say. All but one ask for the shortest delay of a retry.
var plans = []failing{
	{mode: "fine", n: 20, calls: 1},
	{mode: "once", n: 4, plan: []string{"fail=1", "level=1"}, calls: 2, wait: time.Second},
	{mode: "twice", n: 4, plan: []string{"fail=2", "level=1"}, calls: 3, wait: time.Second},
	{mode: "ladder", n: 2, plan: []string{"fail=1"}, calls: 2, wait: 10 * time.Second},
	{mode: "always", n: 3, plan: []string{"fail=99", "level=1"}, calls: 3, wait: time.Second, dead: true},
	{mode: "at once", n: 3, plan: []string{"dead=1"}, calls: 1, dead: true},
}

// retries has a member of a group of its own fail messages, and looks at what
// comes again and at what lies among the dead letters.
func retries(t *testing.T, c *cluster, who string) {
	g := newGroup(t, c, "retries of "+who)
	g.most = 3
	if who != us {
		// The other clients ask for a topic's queues every 30 s, so for the first
		// member of a group retries may be that late: the retry topic did not exist
		// when it started. Here it does.
		g.leave(g.join(us))
		c.waitRoute(t, "%RETRY%"+g.name)
	}
	calls, dead := 0, 0
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
	m := g.join(who)
	g.until(fmt.Sprint(calls, " calls"), func(all []delivery) bool { return len(all) >= calls })
	letters := "%DLQ%" + g.name
	c.waitRoute(t, letters)
	lying := receiveOurs(t, c, letters, dead)
	g.leave(m)

	faults := append(g.checkRetries(), g.checkDead(lying)...)
	if len(lying) != dead {
		faults = append(faults, fmt.Sprintf("%d dead letters, want %d", len(lying), dead))
	}
	line := fmt.Sprintf("%s retries %d dead letters %d altered %d", g.counts(), calls-len(g.sender.sent), len(lying), len(faults))
	if len(faults) > 0 || len(g.all()) != calls {
		t.Fatalf("%s, want %d calls\n%s", line, calls, strings.Join(faults[:min(20, len(faults))], "\n"))
	}
	pairing(c.name, who+g.control(who), "%s", line)
}

// checkRetries compares each call with the message and with its plan.
func (g *group) checkRetries() (faults []string) {
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
				if c.record["offsetId"] != s["offsetId"] {
					faults = append(faults, fmt.Sprintf("%s: offset id sent %q, received %q", s.key(), s["offsetId"], c.record["offsetId"]))
				}
				continue
			}
			faults = append(faults, copied(s, c.record)...)
			if rest := time.Duration(c.begin-calls[i-1].end) * time.Microsecond; rest < p.wait-50*time.Millisecond || rest > p.wait+patience {
				faults = append(faults, fmt.Sprintf("%s: call %d came after %v, want %v", s.key(), i, rest, p.wait))
			}
		}
	}
	for key := range by {
		faults = append(faults, key+": received but never sent")
	}
	return faults
}

// checkDead compares dead letters with the messages.
func (g *group) checkDead(lying []record) (faults []string) {
	by := make(map[string]record)
	for _, s := range g.sender.sent {
		by[s.key()] = s
	}
	for _, r := range lying {
		s := by[r.key()]
		if s == nil || s["mode"] != "always" && s["mode"] != "at once" {
			faults = append(faults, fmt.Sprintf("%q is not to be a dead letter, or is one twice", r.key()))
			continue
		}
		delete(by, r.key())
		attempts := "3"
		if s["mode"] == "at once" {
			attempts = "1"
		}
		if r["attempts"] != attempts {
			faults = append(faults, fmt.Sprintf("%s: a dead letter after %s attempts, want %s", s.key(), r["attempts"], attempts))
		}
		faults = append(append(faults, copied(s, r)...), unchanged(s, original(r))...)
	}
	return faults
}

// original is a dead letter with the topic that it was sent to.
func original(letter record) record {
	r := maps.Clone(letter)
	r["topic"] = r["p.RETRY_TOPIC"]
	return r
}

// copied are the faults of what a copy says about the original.
func copied(sent, got record) (faults []string) {
	for name, want := range map[string]string{"p.RETRY_TOPIC": sent["topic"], "p.ORIGIN_MESSAGE_ID": sent["offsetId"]} {
		if got[name] != want {
			faults = append(faults, fmt.Sprintf("%s: %s is %q, want %q", sent.key(), name, got[name], want))
		}
	}
	return faults
}
