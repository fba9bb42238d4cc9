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

// accounts are the sharding keys of messages in order: more than queues.
const accounts = 3 * queues

// account gives message i the next sharding key.
func account(m *rocketmq.Message, i int) *rocketmq.Message {
	m.ShardingKey = "account " + strconv.Itoa(i%accounts)
	m.Properties["step"] = strconv.Itoa(i/accounts + 1)
	return m
}

// inOrder has one ordered member handle a topic. Two messages fail: one
// until its third attempt, which is good, the other has no more and is a dead
// letter. Their queues wait for them, and no others.
func inOrder(t *testing.T, c *cluster, who string) {
	const n = 10 * accounts
	g := newGroup(t, c, "order of "+who)
	g.ordered, g.most = true, 3
	const late, dead = accounts + 1, accounts + 2
	g.send("order", func(i int) (*rocketmq.Message, []producer.SendOption) {
		switch i {
		case n:
			return nil, nil
		case late:
			return account(g.message("order", i, "fail=2"), i), nil
		case dead:
			return account(g.message("order", i, "fail=99"), i), nil
		}
		return account(g.message("order", i, "work=10"), i), nil
	})
	const calls = n + 4
	m := g.join(who)
	g.until(fmt.Sprint(calls, " calls"), func(all []delivery) bool { return len(all) >= calls })
	// Java sends the dead letter with the delay of a retry. The broker of 4.9.7
	// keeps to it, which is a minute here; others drop it.
	atOnce := c.name != "apache 4.9.7" || who == us
	var lying []record
	if letters := "%DLQ%" + g.name; atOnce {
		c.waitRoute(t, letters)
		lying = receiveOurs(t, c, letters, 1)
	}
	g.leave(m)

	faults, duplicates := g.checkOrder(n - 1)
	for _, i := range []int{late, dead} {
		faults = append(faults, g.checkSuspended(g.sender.sent[i])...)
	}
	if s := g.sender.sent[dead]; atOnce && (len(lying) != 1 || lying[0].key() != s.key()) {
		faults = append(faults, fmt.Sprintf("the dead letters are %v, want %s", lying, s.key()))
	} else if atOnce {
		r := original(lying[0])
		if r["p.ORIGIN_MESSAGE_ID"] == s["id"] { // what Java makes of it where it sends the copy itself
			r["p.ORIGIN_MESSAGE_ID"] = s["offsetId"]
		}
		faults = append(append(faults, copied(s, r)...), unchanged(s, r)...)
	}
	line := fmt.Sprintf("%s duplicates %d suspended 4 dead letters %d faults %d", g.counts(), duplicates, len(lying), len(faults))
	if len(faults) > 0 || len(g.all()) != calls || duplicates > 0 {
		t.Fatalf("%s, want %d calls\n%s", line, calls, strings.Join(faults[:min(20, len(faults))], "\n"))
	}
	pairing(c.name, who+" in order"+g.control(who), "%s", line)
}

// checkSuspended checks three calls of one message, that its queue had no
// other in between, and others had.
func (g *group) checkSuspended(s record) (faults []string) {
	var calls []delivery
	others := 0
	all := g.all()
	for _, c := range all {
		if c.key() == s.key() {
			calls = append(calls, c)
		}
	}
	if len(calls) != 3 {
		return []string{fmt.Sprintf("%s: %d calls, want 3", s.key(), len(calls))}
	}
	for i, c := range calls {
		if c.record["attempts"] != strconv.Itoa(i) {
			faults = append(faults, fmt.Sprintf("%s: call %d has %s attempts before it", s.key(), i, c.record["attempts"]))
		}
		if i > 0 && time.Duration(c.begin-calls[i-1].end)*time.Microsecond < 950*time.Millisecond {
			faults = append(faults, fmt.Sprintf("%s: suspended for %d us, want 1 s", s.key(), c.begin-calls[i-1].end))
		}
	}
	for _, c := range all {
		if c.key() == s.key() || c.end < calls[0].end || c.begin > calls[2].begin {
			continue
		}
		if others++; c.record["queue"] == s["queue"] {
			faults = append(faults, fmt.Sprintf("%s was handled while its queue was suspended for %s", c.key(), s.key()))
		}
	}
	if others == 0 {
		faults = append(faults, fmt.Sprintf("no message of another queue was handled while %s was suspended", s.key()))
	}
	return faults
}

// checkOrder checks all calls of ordered members, whoever made them: of each
// queue one at a time, each message unchanged, and after the one before it.
// What was handled before may come again, and then all that follows does.
func (g *group) checkOrder(want int) (faults []string, duplicates int) {
	sent := make(map[string]record)
	for _, s := range g.sender.sent {
		sent[s.key()] = s
	}
	last, next, step := make(map[string]delivery), make(map[string]int64), make(map[string]int64)
	good := make(map[string]bool)
	for _, c := range g.all() {
		s, q := sent[c.key()], c.record["queue"]
		if s == nil {
			faults = append(faults, c.key()+": received but never sent")
			continue
		}
		faults = append(faults, unchanged(s, c.record)...)
		for _, name := range []string{"queue", "offset", "offsetId"} {
			if s[name] != c.record[name] {
				faults = append(faults, fmt.Sprintf("%s: %s sent %q, received %q", s.key(), name, s[name], c.record[name]))
			}
		}
		before, some := last[q]
		if some && c.begin < before.end {
			faults = append(faults, fmt.Sprintf("%s and %s of queue %s were handled at once, by %s and %s", before.key(), c.key(), q, before.member, c.member))
		}
		last[q] = c
		at, key := c.number(g.t, "offset"), s["sharding"]
		if at > next[q] {
			faults = append(faults, fmt.Sprintf("%s of queue %s has offset %d, the next is %d", c.key(), q, at, next[q]))
		}
		if some && before.record["offset"] != c.record["offset"] && at > before.number(g.t, "offset")+1 {
			faults = append(faults, fmt.Sprintf("%s of queue %s came after %s", c.key(), q, before.key()))
		}
		if key != "" {
			if n := c.number(g.t, "p.step"); n > step[key]+1 {
				faults = append(faults, fmt.Sprintf("step %d of %s came after %d", n, key, step[key]))
			} else {
				step[key] = n
			}
		}
		if c.failed && (g.most == 0 || c.number(g.t, "attempts")+1 < int64(g.most)) {
			continue // it comes again
		}
		if at < next[q] {
			duplicates++
		}
		next[q] = max(next[q], at+1)
		if !c.failed {
			good[c.key()] = true
		}
	}
	if len(good) != want {
		faults = append(faults, fmt.Sprintf("%d messages were handled, want %d", len(good), want))
	}
	return faults, duplicates
}

// orderedGroup has our ordered member share a topic with that of another
// client. Ours leaves under load, comes back, and the other leaves.
func orderedGroup(t *testing.T, c *cluster, who string) {
	g := newGroup(t, c, "ordered group with "+who)
	g.ordered = true
	other := g.join(who)
	ours := g.join(us)
	g.settle("joining")
	g.load("steady", nil)
	g.load("ours leaves", ours)
	ours = g.join(us)
	g.settle("back")
	g.load("other leaves", other)
	g.leave(ours)

	faults, duplicates := g.checkOrder(len(g.sender.sent))
	by, twice := g.duplicates()
	// Ours commits before it lets go of a queue. Java commits before its handler
	// has ended when it gives a queue to a member that comes, so that one message
	// of each may come again; and after it has let go of them when it leaves: all
	// it has handled since it last committed, at most 5 s ago.
	bounds := map[string]int{"joining": queues, "back": queues, "other leaves": loaded}
	for mode, n := range by {
		if n > bounds[mode] {
			faults = append(append(faults, fmt.Sprintf("%d duplicates in %q", n, mode)), twice...)
		}
	}
	line := fmt.Sprintf("%s duplicates %d%s faults %d", g.counts(), duplicates, when(by), len(faults))
	if len(faults) > 0 {
		t.Fatalf("%s\n%s", line, strings.Join(faults[:min(20, len(faults))], "\n"))
	}
	pairing(c.name, us+" and "+who+" in order", "%s", line)
}

// loaded is how many messages are sent while members come and go.
const loaded = 20 * accounts

// settle sends a message to each queue until all members have handled their
// share of them, twice in a row and nobody another's: clients give up queues up
// to a second after they were told of a new member, and other members have
// them meanwhile.
func (g *group) settle(mode string) {
	g.t.Helper()
	good := 0
	for end, round := time.Now().Add(patience), 0; good < 2; round++ {
		if time.Now().After(end) {
			g.t.Fatalf("the members do not share the queues: %s", g.counts())
		}
		first := len(g.sender.sent)
		g.send(mode, func(i int) (*rocketmq.Message, []producer.SendOption) {
			if i == queues {
				return nil, nil
			}
			return g.message(mode, round*queues+i), []producer.SendOption{producer.To(rocketmq.Queue{Topic: g.sender.topic, Broker: brokerName, ID: i})}
		})
		g.handled()
		time.Sleep(500 * time.Millisecond) // room for what must not come
		sent := make(map[string]bool)
		for _, s := range g.sender.sent[first:] {
			sent[s.key()] = true
		}
		share, total := make(map[string]int), 0
		for _, c := range g.all() {
			if sent[c.key()] {
				share[c.member]++
				total++
			}
		}
		fair := total == queues
		for _, m := range g.members {
			fair = fair && share[m.name] >= queues/len(g.members)
		}
		if good++; !fair {
			good = 0
		}
	}
}

// load sends messages for half a second or more, and has a member leave when
// half of them are sent. All are handled when it returns.
func (g *group) load(mode string, leaver *member) {
	g.t.Helper()
	left := make(chan struct{})
	pace := time.NewTicker(2 * time.Millisecond)
	defer pace.Stop()
	// The steps of an account go on where the load before has ended.
	before := 0
	for _, s := range g.sender.sent {
		if s["sharding"] != "" {
			before++
		}
	}
	g.send(mode, func(i int) (*rocketmq.Message, []producer.SendOption) {
		if i == loaded {
			return nil, nil
		}
		if i == loaded/2 && leaver != nil {
			go func() {
				defer close(left)
				leaver.leave()
			}()
		}
		<-pace.C
		m := account(g.message(mode, before+i, "work=3"), before+i)
		return m, nil
	})
	if leaver != nil {
		<-left
		g.leave(leaver)
	}
	g.handled()
}

// duplicates counts calls of messages that had been handled, by their mode, and
// says who handled what twice.
func (g *group) duplicates() (by map[string]int, who []string) {
	calls := make(map[string][]delivery)
	for _, c := range g.all() {
		if !c.failed {
			calls[c.key()] = append(calls[c.key()], c)
		}
	}
	by = make(map[string]int)
	for _, s := range g.sender.sent {
		twice := calls[s.key()]
		by[s["mode"]] += max(len(twice)-1, 0)
		for i := 1; i < len(twice); i++ {
			who = append(who, fmt.Sprintf("%s of queue %s offset %s came to %s, and %d us later to %s",
				s.key(), s["queue"], s["offset"], twice[i-1].member, twice[i].begin-twice[i-1].end, twice[i].member))
		}
	}
	return by, who
}

// when says at which times duplicates came.
func when(by map[string]int) string {
	var parts []string
	for _, mode := range slices.Sorted(maps.Keys(by)) {
		if by[mode] > 0 {
			parts = append(parts, fmt.Sprint(mode, " ", by[mode]))
		}
	}
	if parts == nil {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}
