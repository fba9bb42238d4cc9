//go:build interop

package interop

import (
	"fmt"
	"strings"
	"testing"
)

// inFlight is how many messages of a member may come again to others when it
// leaves: those that its 20 handlers were at, and with them what one of them
// held back in its queue.
const inFlight = 64

// mixedGroup has our consumer, Java consumers and the official Go client share a topic. Two of them leave under load.
func mixedGroup(t *testing.T, c *cluster, whose []string) {
	g := newGroup(t, c, "mixed")
	var javas []*member
	for _, who := range whose {
		javas = append(javas, g.join(who))
	}
	g.join(officialGo)
	ours := g.join(us)
	g.settle("joining")
	g.load("steady", nil)
	g.load("java leaves", javas[len(javas)-1])
	g.settle("without java")
	g.load("ours leaves", ours)
	for len(g.members) > 0 {
		g.leave(g.members[0])
	}

	line := g.checkShared(ours)
	pairing(c.name, fmt.Sprintf("%s, %s and %s", us, strings.Join(whose, ", "), officialGo), "%s", line)
}

// checkShared looks at what the members of a group have got that share its messages,
// and counts. Those sent in mode "steady" must not come twice, nor those again that
// ours has handled before it left.
func (g *group) checkShared(ours *member) string {
	g.t.Helper()
	var faults []string
	sent := make(map[string]record)
	for _, s := range g.sender.sent {
		sent[s.key()] = s
	}
	good := make(map[string]bool)
	for _, cl := range g.all() {
		s := sent[cl.key()]
		if s == nil {
			faults = append(faults, cl.key()+": received but never sent")
			continue
		}
		good[cl.key()] = true
		faults = append(faults, unchanged(s, cl.record)...)
		if cl.record["attempts"] != "0" || cl.record["offset"] != s["offset"] || cl.record["queue"] != s["queue"] {
			faults = append(faults, fmt.Sprintf("%s: %s attempts, queue %s, offset %s, sent to %s, %s",
				s.key(), cl.record["attempts"], cl.record["queue"], cl.record["offset"], s["queue"], s["offset"]))
		}
	}
	if len(good) != len(sent) {
		faults = append(faults, fmt.Sprintf("%d messages were handled, want %d", len(good), len(sent)))
	}
	duplicates := 0
	by, twice := g.duplicates()
	for mode, n := range by {
		duplicates += n
		if mode == "steady" && n > 0 || n > inFlight {
			faults = append(append(faults, fmt.Sprintf("%d duplicates in %q", n, mode)), twice...)
		}
	}
	for _, text := range twice {
		g.t.Log(text)
		if strings.HasPrefix(text, "ours-leaves-") && strings.Contains(text, "came to "+ours.name+",") {
			faults = append(faults, text) // ours commits what it has handled before it leaves
		}
	}
	line := fmt.Sprintf("%s duplicates %d%s altered %d", g.counts(), duplicates, when(by), len(faults))
	if len(faults) > 0 {
		g.t.Fatalf("%s\n%s", line, strings.Join(faults[:min(20, len(faults))], "\n"))
	}
	return line
}
