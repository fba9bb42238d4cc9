package txn_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/txn"
)

// TestCloseWaits for local transactions and checks under way.
func TestCloseWaits(t *testing.T) {
	cluster := newCluster(t)
	asked, answer := make(chan struct{}), make(chan struct{})
	p := newProducer(t, cluster.Client(t), func(context.Context, *rocketmq.MessageView) (txn.State, error) {
		close(asked)
		<-answer
		return txn.Commit, nil
	})
	_, err := p.Begin(t.Context(), order("checked"))
	require.NoError(t, err)
	require.Equal(t, 1, cluster.CheckTransactions())
	<-asked
	inside, leave, sent := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := p.Send(t.Context(), order("sent"), func(context.Context, *txn.Tx) (txn.State, error) {
			close(inside)
			<-leave
			return txn.Commit, nil
		})
		sent <- err
	}()
	<-inside
	hurry, cancel := context.WithCancel(t.Context())
	cancel()
	closed := make(chan error, 1)
	go func() { closed <- p.Close(t.Context()) }()
	eventually(t, "closing", func() bool {
		_, err := p.Begin(t.Context(), order("late"))
		return err != nil
	})
	require.Empty(t, closed)
	close(leave)
	require.NoError(t, <-sent)
	require.Empty(t, closed, "the check is still under way")
	close(answer)
	require.NoError(t, <-closed)
	require.NoError(t, p.Close(hurry), "once closed it stays so")
	require.Equal(t, []string{"checked", "sent"}, sorted(bodies(cluster, "orders")))
	require.Zero(t, cluster.CheckTransactions())
}

// TestCloseInAHurry ends the contexts of checks, and says what is left.
func TestCloseInAHurry(t *testing.T) {
	cluster := newCluster(t)
	asked, causes := make(chan struct{}), make(chan error, 1)
	p := newProducer(t, cluster.Client(t), func(ctx context.Context, _ *rocketmq.MessageView) (txn.State, error) {
		close(asked)
		<-ctx.Done()
		causes <- context.Cause(ctx)
		return txn.Unknown, ctx.Err()
	})
	_, err := p.Begin(t.Context(), order("a"))
	require.NoError(t, err)
	cluster.CheckTransactions()
	<-asked
	hurry, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorContains(t, p.Close(hurry), "checks are still under way")
	require.ErrorIs(t, <-causes, rocketmq.ErrClosed)
}

// TestClientClosesItsProducers with all they have.
func TestClientClosesItsProducers(t *testing.T) {
	cluster := newCluster(t)
	cl := cluster.Client(t)
	p := newProducer(t, cl, unasked(t))
	tx, err := p.Begin(t.Context(), order("a"))
	require.NoError(t, err)
	require.NoError(t, cl.Close(t.Context()))
	require.ErrorIs(t, tx.Commit(t.Context()), rocketmq.ErrClosed)
	_, err = p.Begin(t.Context(), order("b"))
	require.ErrorIs(t, err, rocketmq.ErrClosed)
	require.Equal(t, 1, cluster.Undecided())
}
