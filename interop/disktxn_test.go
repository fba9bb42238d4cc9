//go:build interop

package interop

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/producer"
	"github.com/gorocketmq/rocketmq/txn"
)

// TestDiskTransactions exchanges store directories with half messages and with
// messages of delay levels. What one side took, and was then stopped or killed,
// the other goes on with: it delivers what is due, and asks about what is
// undecided, and about nothing else.
func TestDiskTransactions(t *testing.T) {
	vs := diskVersions()
	if len(vs) == 0 {
		t.Skip("neither 5.3.3 nor 4.9.7 is among the versions")
	}
	ns := freePort(t)
	startNamesrv(t, vs[0], javaHome(t, "disk-txn-namesrv"), ns)
	for _, v := range vs {
		for _, oursFirst := range []bool{true, false} {
			for _, end := range []string{"stopped", "killed"} {
				from, to := "ours", "apache "+v
				if !oursFirst {
					from, to = to, from
				}
				t.Run(from+" "+end+" to "+to, func(t *testing.T) {
					t.Parallel()
					topic := fmt.Sprintf("DiskTxn_%s_%t_%s", strings.ReplaceAll(v, ".", "_"), oursFirst, end)
					c := &cluster{
						name: from, alias: "broker-" + topic, apache: !oursFirst,
						namesrv: fmt.Sprintf("127.0.0.1:%d", ns), broker: fmt.Sprintf("127.0.0.1:%d", freePort(t)),
					}
					d := newDisk(t, c, topic)
					start := func(ours bool) *server {
						if ours {
							return d.ours(t)
						}
						return d.apache(t, v)
					}
					d.more = []string{"transactionTimeOut=600000"} // the first is not to ask
					if !oursFirst || v != "4.9.7" && end == "stopped" {
						d.more = append(d.more, soonChecked[2]) // 4.9 cannot read op records that were collected
					}
					b := start(oursFirst)
					c.makeTopic(t, topic)
					c.makeTopic(t, topic+"_levels")
					sent := takeTransactions(t, c, topic)
					levels := takeLevels(t, c, topic+"_levels")
					if end == "killed" || !oursFirst {
						time.Sleep(1500 * time.Millisecond) // Apache's broker collects what was decided
					}
					if end == "killed" {
						b.kill(t)
					} else if err := b.stop(); err != nil && !strings.Contains(err.Error(), "143") { // the JVM's way to report SIGTERM
						t.Fatalf("SIGTERM: %v", err)
					}

					c.name, c.apache, d.more = to, oursFirst, soonChecked
					b = start(!oursFirst)
					c.waitTopic(t, topic)
					c.waitTopic(t, topic+"_levels")
					asked := checkedAfter(t, c, topic, sent)
					line := outcomes(t, c, topic)
					late := checkTimers(t, levels, receiveOurs(t, c, topic+"_levels", len(levels)))
					b.kill(t) // nobody needs its store any more
					if !t.Failed() {
						pairing("disk transactions "+from+" "+end, to, "sent %d asked about %d%s; delay levels %d early 0 latest %v",
							len(sent), asked, line, len(levels), late)
					}
				})
			}
		}
	}
}

// takeTransactions makes transactions of all kinds and tells the broker how those
// ended that are decided at once. It returns them by their bodies.
func takeTransactions(t *testing.T, c *cluster, topic string) map[string]txn.Result {
	t.Helper()
	sent := map[string]txn.Result{}
	withTransactions(t, c, topic, func(half *rocketmq.MessageView) txn.State {
		t.Errorf("the first broker asks about %s", half.Body)
		return txn.Unknown
	}, func(ctx context.Context, p *txn.Producer) {
		for i := range transacted {
			for _, k := range kinds {
				body := fmt.Sprintf("%s-%d", k.name, i)
				state := txn.Unknown
				if !strings.HasPrefix(k.name, "later") {
					state = outcomeOf(body)
				}
				r, err := p.Send(ctx, &rocketmq.Message{Topic: topic, Tag: "tag", Keys: []string{body}, Body: []byte(body)},
					func(context.Context, *txn.Tx) (txn.State, error) { return state, nil })
				if err != nil || r.State != state {
					t.Fatalf("%s: %v, %v", body, r.State, err)
				}
				sent[body] = r
			}
		}
	})
	return sent
}

// checkedAfter answers what a broker asks about transactions that another has
// taken, and returns about how many it has asked.
func checkedAfter(t *testing.T, c *cluster, topic string, sent map[string]txn.Result) int {
	t.Helper()
	var mu sync.Mutex // guards asked
	asked := map[string]bool{}
	all := make(chan struct{})
	withTransactions(t, c, topic, func(half *rocketmq.MessageView) txn.State {
		mu.Lock()
		defer mu.Unlock()
		body := string(half.Body)
		r, ok := sent[body]
		if !ok || half.Topic != topic || r.TransactionID != half.TransactionID || r.MessageID != half.ID || r.Queue.ID != half.Queue.ID {
			t.Errorf("asked about %s, transaction %s of %s: sent as %+v", body, half.TransactionID, half.Topic, r)
		}
		if !strings.HasPrefix(body, "later") {
			t.Errorf("asked about %s, which is decided", body)
		} else if !asked[body] {
			if asked[body] = true; len(asked) == 2*transacted {
				close(all)
			}
		}
		return outcomeOf(body)
	}, func(ctx context.Context, _ *txn.Producer) {
		select {
		case <-all:
		case <-ctx.Done():
			mu.Lock()
			t.Errorf("asked about %d transactions, want %d", len(asked), 2*transacted)
			mu.Unlock()
		}
	})
	return len(asked)
}

// outcomeOf is how the transaction of a message ends.
func outcomeOf(body string) txn.State {
	if strings.Contains(body, "commit") {
		return txn.Commit
	}
	return txn.Rollback
}

// withTransactions runs f with a transactional producer of the topic's group.
func withTransactions(t *testing.T, c *cluster, topic string, check func(*rocketmq.MessageView) txn.State, f func(context.Context, *txn.Producer)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cl, err := rocketmq.NewClient(rocketmq.WithNameServers(c.namesrv), rocketmq.WithRequestTimeout(10*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, "client", cl.Close)
	p, err := txn.NewProducer(cl, "txn_"+topic, func(_ context.Context, half *rocketmq.MessageView) (txn.State, error) {
		return check(half), nil
	}, txn.WithTimeout(20*time.Second, 10*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, "transactional producer", p.Close)
	f(ctx, p)
}

// takeLevels sends messages that are due in 10 s.
func takeLevels(t *testing.T, c *cluster, topic string) []record {
	s := newSender(t, c, topic)
	s.with(func(ctx context.Context, p *producer.Producer) {
		for i := range 12 {
			m := s.message("level", i)
			m.Delay = rocketmq.DelayLevel(3)
			m.Properties = map[string]string{"due": strconv.FormatInt(time.Now().Add(10*time.Second).UnixMilli(), 10)}
			r, err := p.Send(ctx, m)
			s.took("level", m, r, err)
		}
	})
	return slices.Clone(s.sent)
}
