package txn_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/testbroker"
	"github.com/gorocketmq/rocketmq/txn"
)

// TestC27_CheckHandlerMisbehaves: one check takes 10 s, one panics, all others
// are answered within a second of their arrival. In virtual time.
func TestC27_CheckHandlerMisbehaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := testbroker.New(t, testbroker.Topic("orders", 2), testbroker.Virtual())
		var log logged
		var mu sync.Mutex
		asked := map[string]int{}
		p := newProducer(t, cluster.Client(t, log.option()), func(_ context.Context, half *rocketmq.MessageView) (txn.State, error) {
			id := string(half.Body)
			mu.Lock()
			asked[id]++
			mu.Unlock()
			switch id {
			case "1":
				time.Sleep(10 * time.Second)
			case "2":
				panic("poison")
			}
			return txn.Commit, nil
		}, txn.WithCheckConcurrency(4))
		for i := range 50 {
			_, err := p.Begin(t.Context(), order(fmt.Sprint(i+1)))
			require.NoError(t, err)
		}
		require.Equal(t, 50, cluster.CheckTransactions())
		began := time.Now()
		eventually(t, "3 to 50", func() bool { return cluster.Undecided() == 2 })
		require.Less(t, time.Since(began), time.Second)
		require.Len(t, cluster.Messages("orders"), 48)
		require.Contains(t, log.String(), "poison")
		require.Contains(t, log.String(), "checks_test.go", "with its stack")

		require.Equal(t, 2, cluster.CheckTransactions(), "unknown ones are asked about again")
		eventually(t, "the panic", func() bool { return strings.Count(log.String(), "panic in the check") == 2 })
		mu.Lock()
		require.Equal(t, 1, asked["1"], "checks of one message never overlap")
		mu.Unlock()
		time.Sleep(10 * time.Second)
		eventually(t, "1", func() bool { return cluster.Undecided() == 1 })
	})
}

// TestTooManyChecks: what waits is bounded, and what is dropped is asked about
// again.
func TestTooManyChecks(t *testing.T) {
	cluster := newCluster(t)
	var log logged
	cl := cluster.Client(t, log.option())
	hang, hanging := make(chan struct{}), make(chan struct{})
	var once sync.Once
	p := newProducer(t, cl, func(context.Context, *rocketmq.MessageView) (txn.State, error) {
		once.Do(func() { close(hanging) })
		<-hang
		return txn.Rollback, nil
	}, txn.WithCheckConcurrency(1))
	const n = 2050
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() {
			for range n / 10 {
				if _, err := p.Begin(t.Context(), order(fmt.Sprint(i))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	cluster.CheckTransactions()
	<-hanging
	eventually(t, "dropped", func() bool {
		cluster.CheckTransactions() // those that the connection had no room for
		return strings.Contains(log.String(), "dropping some")
	})
	close(hang)
	eventually(t, "all but the dropped", func() bool { return cluster.Undecided() <= n-2001 })
	eventually(t, "all", func() bool {
		cluster.CheckTransactions()
		return cluster.Undecided() == 0
	})
}

func TestCheckTimeout(t *testing.T) {
	cluster := newCluster(t)
	causes := make(chan error, 1)
	p := newProducer(t, cluster.Client(t), func(ctx context.Context, _ *rocketmq.MessageView) (txn.State, error) {
		<-ctx.Done()
		causes <- context.Cause(ctx)
		return txn.Commit, nil // it has found out in the end
	}, txn.WithCheckTimeout(10*time.Millisecond))
	_, err := p.Begin(t.Context(), order("a"))
	require.NoError(t, err)
	cluster.CheckTransactions()
	require.ErrorIs(t, <-causes, context.DeadlineExceeded)
	eventually(t, "committed", func() bool { return cluster.Undecided() == 0 })
}

func TestCheckWithAnErrorIsUnknown(t *testing.T) {
	cluster := newCluster(t)
	var log logged
	p := newProducer(t, cluster.Client(t, log.option()), func(context.Context, *rocketmq.MessageView) (txn.State, error) {
		return txn.Commit, errors.New("data base away")
	})
	_, err := p.Begin(t.Context(), order("a"))
	require.NoError(t, err)
	cluster.Advance(6 * time.Second)
	require.Contains(t, log.String(), "data base away")
	require.Equal(t, 1, cluster.Undecided())
}

// TestProducerIsKnownFromTheStart: it is asked about what others have left
// before it has sent anything.
func TestProducerIsKnownFromTheStart(t *testing.T) {
	for name, opts := range map[string][]txn.Option{"all brokers": nil, "by topic": {txn.WithTopics("orders")}} {
		t.Run(name, func(t *testing.T) {
			cluster := newCluster(t, testbroker.Brokers(2))
			dead := &process{}
			p := newProducer(t, cluster.Client(t, rocketmq.WithDialer(dead.dial)), unasked(t))
			for range 4 { // some at each broker
				_, err := p.Begin(t.Context(), order("a"))
				require.NoError(t, err)
			}
			dead.die()
			cluster.Advance(time.Hour)
			require.Equal(t, 4, cluster.Undecided(), "nobody is there, so no check is used up")
			newProducer(t, cluster.Client(t), says(txn.Commit), opts...)
			eventually(t, "all of them", func() bool { return cluster.Undecided() == 0 })
			require.Len(t, cluster.Messages("orders"), 4)
		})
	}
}

// TestProducerDeathAtEachStep: a process dies somewhere in a transaction, and
// another one of its group finds its outcome in the data base.
func TestProducerDeathAtEachStep(t *testing.T) {
	for _, outcome := range []txn.State{txn.Commit, txn.Rollback} {
		for _, c := range []struct {
			step string
			know bool // the outcome is in the data base
			cut  func(cluster *testbroker.Cluster, p *process)
		}{
			{"before the half message arrives", false, func(c *testbroker.Cluster, _ *process) { c.On(testbroker.SendMessage).Times(1).Drop() }},
			{"before the answer to the half message", false, func(c *testbroker.Cluster, _ *process) {
				c.On(testbroker.SendMessage).AfterApply().Times(1).Drop()
			}},
			{"before the local transaction", false, nil},
			{"after the local transaction", true, nil},
			{"before the decision arrives", true, func(c *testbroker.Cluster, _ *process) { c.On(testbroker.EndTransaction).Times(1).Drop() }},
			{"before the answer to the decision", true, func(c *testbroker.Cluster, _ *process) {
				c.On(testbroker.EndTransaction).AfterApply().Times(1).Drop()
			}},
		} {
			t.Run(outcome.String()+" "+c.step, func(t *testing.T) {
				cluster := newCluster(t)
				var mu sync.Mutex
				base := map[string]txn.State{} // the data base
				dying := &process{}
				first := newProducer(t, cluster.Client(t, rocketmq.WithDialer(dying.dial)), unasked(t),
					txn.WithTimeout(50*time.Millisecond, 50*time.Millisecond), txn.WithRetries(0))
				if c.cut != nil {
					c.cut(cluster, dying)
				}
				_, err := first.Send(t.Context(), order("a"), func(_ context.Context, tx *txn.Tx) (txn.State, error) {
					require.Empty(t, cluster.Messages("orders"))
					if c.step == "before the local transaction" {
						dying.die()
						return outcome, nil
					}
					mu.Lock()
					base[tx.ID()] = outcome
					mu.Unlock()
					if c.step == "after the local transaction" {
						dying.die()
					}
					return outcome, nil
				})
				require.Error(t, err)
				dying.die()
				newProducer(t, cluster.Client(t), func(_ context.Context, half *rocketmq.MessageView) (txn.State, error) {
					mu.Lock()
					defer mu.Unlock()
					if s := base[half.TransactionID]; s != txn.Unknown {
						return s, nil
					}
					return txn.Rollback, nil
				})
				eventually(t, "decided", func() bool {
					cluster.Advance(6 * time.Second)
					return cluster.Undecided() == 0
				})
				want := []string{}
				if c.know && outcome == txn.Commit {
					want = append(want, "a")
				}
				require.Equal(t, want, bodies(cluster, "orders"))
			})
		}
	}
}

// TestBrokerRestartInATransaction: a killed broker knows what was undecided.
func TestBrokerRestartInATransaction(t *testing.T) {
	cluster := newCluster(t)
	p := newProducer(t, cluster.Client(t), says(txn.Commit))
	committed, err := p.Begin(t.Context(), order("a"))
	require.NoError(t, err)
	_, err = p.Begin(t.Context(), order("b"))
	require.NoError(t, err)
	gone, err := p.Begin(t.Context(), order("c"))
	require.NoError(t, err)
	require.NoError(t, gone.Rollback(t.Context()))
	cluster.Kill("broker-a", 0)
	cluster.Restart("broker-a", 0)
	require.Equal(t, 2, cluster.Undecided())
	eventually(t, "the connection is back", func() bool { return committed.Commit(t.Context()) == nil })
	eventually(t, "checked", func() bool {
		cluster.Advance(6 * time.Second)
		return cluster.Undecided() == 0
	})
	require.Equal(t, []string{"a", "b"}, sorted(bodies(cluster, "orders")))
}
