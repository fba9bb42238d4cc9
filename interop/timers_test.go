//go:build interop

package interop

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/producer"
)

// timerVersion is the Apache version whose store directories with pending
// timers are exchanged, and whose client sends and recalls them. Recalls are
// there since 5.3.2.
const timerVersion = "5.3.3"

// timersJava has the Java client send timer messages to a broker, and recall
// some. The others come to our consumer, none early.
func timersJava(t *testing.T, version string, c *cluster) {
	topic := "Timers_" + strings.ReplaceAll(version, ".", "_")
	c.makeTopic(t, topic)
	dir := javaHome(t, "timers-"+version)
	file := filepath.Join(dir, "sent")
	out, err := output(t, patience, javaCommand(dir, javaClasses(t, version), toolFlags, "Timers", c.namesrv, topic, file, "20"))
	if err != nil {
		t.Fatalf("Timers: %v\n%s", err, quiet(out))
	}
	sent := readSent(t, file, out)
	late := checkTimers(t, sent, receiveOurs(t, c, topic, len(sent)))
	if !t.Failed() {
		pairing("java "+version+" timers", c.name+" -> our consumer", "messages %d recalled %d early 0 latest %v", len(sent), 20-len(sent), late)
	}
}

// checkTimers checks that what was sent has come, once, and nothing else, and
// none before its time. It returns by how much the last one was late.
func checkTimers(t *testing.T, sent, got []record) (late time.Duration) {
	t.Helper()
	came := map[string]int{}
	for _, r := range got {
		came[r.key()]++
		by := time.Duration(r.number(t, "stored")-r.number(t, "p.due")) * time.Millisecond
		if by < 0 {
			t.Errorf("%s came %v before it was due", r.key(), -by)
		}
		late = max(late, by)
	}
	for _, r := range sent {
		if came[r.key()] != 1 {
			t.Errorf("%s came %d times", r.key(), came[r.key()])
		}
	}
	if len(got) != len(sent) {
		t.Errorf("%d messages came, want %d", len(got), len(sent))
	}
	return late
}

// timersTo sends timer messages that are due from after on, and some with delay
// levels, and recalls one. It returns those that are to come.
func timersTo(t *testing.T, c *cluster, topic string, after time.Duration) []record {
	s := newSender(t, c, topic)
	s.with(func(ctx context.Context, p *producer.Producer) {
		for i := range 12 {
			m := s.message("timer", i)
			delay := after + time.Duration(i)*333*time.Millisecond
			m.Delay = rocketmq.DelayFor(delay)
			switch {
			case i%4 == 1:
				m.Delay = rocketmq.DeliverAt(time.Now().Add(delay))
			case i%4 == 2:
				delay = 10 * time.Second
				m.Delay = rocketmq.DelayLevel(3)
			}
			m.Properties = map[string]string{"due": strconv.FormatInt(time.Now().Add(delay).UnixMilli(), 10)}
			r, err := p.Send(ctx, m)
			if err == nil && i == 8 {
				if _, err := p.Recall(ctx, topic, r.RecallHandle); err != nil {
					t.Errorf("recall: %v", err)
				}
				continue
			}
			s.took("timer", m, r, err)
		}
	})
	return s.sent
}

// TestDiskTimers exchanges store directories with messages that are not due
// yet: what one side took, and was then stopped or killed, the other delivers.
func TestDiskTimers(t *testing.T) {
	if !slices.Contains(versions, timerVersion) {
		t.Skip(timerVersion + " is not among the versions")
	}
	ns := freePort(t)
	startNamesrv(t, timerVersion, javaHome(t, "disk-timers-namesrv"), ns)
	ours := func(d *disk) *server { return d.ours(t) }
	apache := func(d *disk) *server { return d.apache(t, timerVersion) }
	for _, x := range []struct {
		from, to   string
		take, give func(*disk) *server
	}{{"ours", "apache " + timerVersion, ours, apache}, {"apache " + timerVersion, "ours", apache, ours}} {
		for _, end := range []string{"stopped", "killed"} {
			t.Run(x.from+" "+end+" to "+x.to, func(t *testing.T) {
				t.Parallel()
				topic := fmt.Sprintf("DiskTimers_%.4s_%s", x.from, end)
				c := &cluster{name: topic, alias: "broker-" + topic, namesrv: fmt.Sprintf("127.0.0.1:%d", ns), broker: fmt.Sprintf("127.0.0.1:%d", freePort(t))}
				d := newDisk(t, c, topic)
				b := x.take(d)
				c.makeTopic(t, topic)
				sent := timersTo(t, c, topic, 9*time.Second)
				if end == "killed" {
					time.Sleep(1500 * time.Millisecond) // both flush their timers every second
					b.kill(t)
				} else if err := b.stop(); err != nil && !strings.Contains(err.Error(), "143") { // the JVM's way to report SIGTERM
					t.Fatalf("SIGTERM: %v", err)
				}
				b = x.give(d)
				c.waitTopic(t, topic)
				late := checkTimers(t, sent, receiveOurs(t, c, topic, len(sent)))
				b.kill(t)
				if !t.Failed() {
					pairing("disk timers "+x.from+" "+end, x.to, "messages %d early 0 latest %v", len(sent), late)
				}
			})
		}
	}
}
