//go:build interop

package interop

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/selector"
	"github.com/gorocketmq/rocketmq/txn"
)

// transacted is how many transactions of each kind are made.
const transacted = 10

// soonChecked are settings with which brokers ask about transactions soon, and not
// before a slow client knows that it has sent something.
var soonChecked = []string{"transactionTimeOut=3000", "transactionCheckInterval=1000", "transactionOpBatchInterval=200"}

// kinds of transactions, and whether their messages come out.
var kinds = []struct {
	name string
	out  bool
}{{"commit", true}, {"rollback", false}, {"later-commit", true}, {"later-rollback", false}}

// transactions lets our producer and Java's of a version make transactions: those
// that are decided at once, and those that the broker has to ask about.
func transactions(t *testing.T, version string, c *cluster) {
	name := strings.ReplaceAll(version, ".", "_")
	t.Run("ours", func(t *testing.T) {
		topic := "TxnOurs_" + name
		c.makeTopic(t, topic)
		line := transactOurs(t, c, topic)
		line += outcomes(t, c, topic)
		pairing("our transactions", c.name, "%s", line)
	})
	t.Run("java", func(t *testing.T) {
		topic := "TxnJava_" + name
		c.makeTopic(t, topic)
		dir := javaHome(t, "transact-"+version)
		out, err := output(t, patience, javaCommand(dir, javaClasses(t, version), toolFlags,
			"Transact", c.namesrv, topic, "transact_"+topic, fmt.Sprint(transacted)))
		want := fmt.Sprintf("sent %d checked %d altered 0", 4*transacted, 2*transacted)
		if err != nil || !strings.Contains(out, want+"\n") { // 4.9.7 logs after it
			t.Fatalf("%v, no line %q; output:\n%s", err, want, quiet(out))
		}
		line := want + outcomes(t, c, topic)
		control := ""
		if c.apache {
			control = " (control)"
		}
		pairing("java "+version+" transactions", c.name+control, "%s", line)
	})
}

// transactOurs makes transactions with our producer.
func transactOurs(t *testing.T, c *cluster, topic string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cl, err := rocketmq.NewClient(rocketmq.WithNameServers(c.namesrv), rocketmq.WithRequestTimeout(10*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cl.Close(ctx) }()
	decide := func(body string) txn.State {
		if strings.Contains(body, "commit") {
			return txn.Commit
		}
		return txn.Rollback
	}
	var mu sync.Mutex // guards the two below
	sent, checked := map[string]txn.Result{}, map[string]bool{}
	all := make(chan struct{})
	p, err := txn.NewProducer(cl, "txn_"+topic, func(_ context.Context, half *rocketmq.MessageView) (txn.State, error) {
		mu.Lock()
		defer mu.Unlock()
		body := string(half.Body)
		if r := sent[body]; half.Topic != topic || r.TransactionID != half.TransactionID || r.MessageID != half.ID || r.Queue.ID != half.Queue.ID {
			t.Errorf("check of %s, transaction %s of %s: sent as %+v", body, half.TransactionID, half.Topic, r)
		}
		if strings.HasPrefix(body, "later") && !checked[body] {
			if checked[body] = true; len(checked) == 2*transacted {
				close(all)
			}
		}
		return decide(body), nil
	}, txn.WithTimeout(20*time.Second, 10*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range kinds {
		for i := range transacted {
			body := fmt.Sprintf("%s-%d", k.name, i)
			m := &rocketmq.Message{Topic: topic, Tag: "tag", Keys: []string{body}, Body: []byte(body)}
			note := func(r txn.Result) {
				mu.Lock()
				defer mu.Unlock()
				sent[body] = r
			}
			want := txn.Unknown
			if !strings.HasPrefix(body, "later") {
				want = decide(body)
			}
			res, err := p.Send(ctx, m, func(_ context.Context, tx *txn.Tx) (txn.State, error) {
				note(txn.Result{MessageID: tx.ID(), TransactionID: tx.ID(), Queue: tx.Queue()})
				return want, nil
			})
			if err != nil || res.State != want {
				t.Fatalf("%s: %v, %v; want %v", body, res.State, err, want)
			}
		}
	}
	select {
	case <-all:
	case <-ctx.Done():
		mu.Lock()
		t.Errorf("only %d of %d were asked about", len(checked), 2*transacted)
		mu.Unlock()
	}
	if err := p.Close(ctx); err != nil {
		t.Errorf("close: %v", err)
	}
	return fmt.Sprintf("sent %d checked %d altered 0", 4*transacted, len(checked))
}

// outcomes consumes what came of the transactions.
func outcomes(t *testing.T, c *cluster, topic string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cl, err := rocketmq.NewClient(rocketmq.WithNameServers(c.namesrv), rocketmq.WithRequestTimeout(10*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cl.Close(context.WithoutCancel(ctx)) }()
	want := map[string]bool{}
	for _, k := range kinds {
		for i := range transacted {
			want[fmt.Sprintf("%s-%d", k.name, i)] = k.out
		}
	}
	var mu sync.Mutex // guards got
	got := map[string]int{}
	all := make(chan struct{})
	cons, err := consumer.NewPush(cl, "out_"+topic, consumer.Subscribe(topic, selector.Tags("tag"), consumer.Each(
		func(_ context.Context, m *rocketmq.MessageView) error {
			mu.Lock()
			defer mu.Unlock()
			if got[string(m.Body)]++; len(got) == 2*transacted && got[string(m.Body)] == 1 {
				close(all)
			}
			return nil
		})), consumer.StartFrom(rocketmq.Earliest()))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cons.Run(context.WithoutCancel(ctx)) }()
	select {
	case <-all:
		time.Sleep(time.Second) // for what must not come
	case <-ctx.Done():
	}
	if err := cons.Close(context.WithoutCancel(ctx)); err != nil {
		t.Error(err)
	}
	<-ended
	twice := 0
	for body, out := range want {
		if n := got[body]; out != (n > 0) {
			t.Errorf("%s came %d times", body, n)
		} else if n > 1 {
			twice++
		}
	}
	if twice > 0 && !c.apache {
		t.Errorf("%d messages came more than once", twice)
	}
	return fmt.Sprintf(" delivered %d duplicates %d", len(got), twice)
}
