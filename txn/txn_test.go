package txn_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/selector"
	"github.com/gorocketmq/rocketmq/testbroker"
	"github.com/gorocketmq/rocketmq/txn"
)

func TestSend(t *testing.T) {
	broken := errors.New("no money")
	for name, c := range map[string]struct {
		state txn.State
		err   error
		want  txn.State
		seen  []string
		left  int
	}{
		"commit":              {txn.Commit, nil, txn.Commit, []string{"a"}, 0},
		"rollback":            {txn.Rollback, nil, txn.Rollback, []string{}, 0},
		"rollback and error":  {txn.Rollback, broken, txn.Rollback, []string{}, 0},
		"unknown":             {txn.Unknown, nil, txn.Unknown, []string{}, 1},
		"unknown and error":   {txn.Unknown, broken, txn.Unknown, []string{}, 1},
		"commit and error":    {txn.Commit, broken, txn.Unknown, []string{}, 1},
		"no such state":       {txn.State(7), nil, txn.Unknown, []string{}, 1},
		"nothing but nothing": {0, nil, txn.Unknown, []string{}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := newCluster(t)
			p := newProducer(t, cluster.Client(t), unasked(t))
			id := ""
			m := order("a")
			res, err := p.Send(t.Context(), m, func(_ context.Context, tx *txn.Tx) (txn.State, error) {
				require.Empty(t, cluster.Messages("orders"), "not before the outcome")
				require.Equal(t, 1, cluster.Undecided())
				id = tx.ID()
				return c.state, c.err
			})
			if c.err != nil {
				require.Equal(t, c.err, err, "as it is")
			} else if c.state > txn.Rollback {
				require.ErrorContains(t, err, "none of Unknown")
			} else {
				require.NoError(t, err)
			}
			require.Equal(t, c.want, res.State)
			require.Equal(t, []string{id, id}, []string{res.MessageID, res.TransactionID})
			require.Equal(t, order("a"), m, "the message is not touched")
			require.Equal(t, c.seen, bodies(cluster, "orders"))
			require.Equal(t, c.left, cluster.Undecided())
		})
	}
}

func TestPanicIsUnknownAndGoesOn(t *testing.T) {
	cluster := newCluster(t)
	p := newProducer(t, cluster.Client(t), says(txn.Rollback))
	require.PanicsWithValue(t, "oops", func() {
		_, _ = p.Send(t.Context(), order("a"), func(context.Context, *txn.Tx) (txn.State, error) { panic("oops") })
	})
	require.Equal(t, 1, cluster.Undecided())
	require.NoError(t, p.Close(t.Context()), "nothing is held up")
}

// TestOutcomeIsToldAfterTheContext: the caller's patience ends while the local
// transaction runs, but its outcome stands.
func TestOutcomeIsToldAfterTheContext(t *testing.T) {
	cluster := newCluster(t)
	p := newProducer(t, cluster.Client(t), unasked(t))
	ctx, cancel := context.WithCancel(t.Context())
	res, err := p.Send(ctx, order("a"), func(context.Context, *txn.Tx) (txn.State, error) {
		cancel()
		return txn.Commit, nil
	})
	require.NoError(t, err)
	require.Equal(t, txn.Commit, res.State)
	require.Equal(t, []string{"a"}, bodies(cluster, "orders"))
}

func TestExplicit(t *testing.T) {
	cluster := newCluster(t)
	p := newProducer(t, cluster.Client(t), unasked(t))
	tx, err := p.Begin(t.Context(), order("a"))
	require.NoError(t, err)
	require.NotEmpty(t, tx.ID())
	require.Equal(t, "orders", tx.Queue().Topic)
	require.Empty(t, cluster.Messages("orders"))
	require.NoError(t, tx.Commit(t.Context()))
	require.NoError(t, tx.Commit(t.Context()))
	require.ErrorIs(t, tx.Rollback(t.Context()), txn.ErrDecided)
	m := cluster.Messages("orders")
	require.Len(t, m, 1)
	require.Equal(t, tx.ID(), m[0].ID)
	require.Equal(t, tx.Queue(), m[0].Queue)

	tx, err = p.Begin(t.Context(), order("b"))
	require.NoError(t, err)
	require.NoError(t, tx.Rollback(t.Context()))
	require.ErrorIs(t, tx.Commit(t.Context()), txn.ErrDecided)
	require.Equal(t, []string{"a"}, bodies(cluster, "orders"))

	res, err := p.Send(t.Context(), order("c"), func(ctx context.Context, tx *txn.Tx) (txn.State, error) {
		return txn.Unknown, tx.Commit(ctx)
	})
	require.NoError(t, err)
	require.Equal(t, txn.Commit, res.State, "decided on the way")
	require.Zero(t, cluster.Undecided())

	tx, err = p.Begin(t.Context(), order("d"))
	require.NoError(t, err)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, tx.Commit(ended), context.Canceled)
	require.NoError(t, p.Close(t.Context()))
	require.NoError(t, tx.Commit(t.Context()), "as long as the client is open")
	require.Equal(t, []string{"a", "c", "d"}, sorted(bodies(cluster, "orders")))
	_, err = p.Begin(t.Context(), order("e"))
	require.ErrorIs(t, err, rocketmq.ErrClosed)
	_, err = p.Send(t.Context(), order("e"), local(txn.Commit, nil))
	require.ErrorIs(t, err, rocketmq.ErrClosed)
}

func TestMessagesThatAreRefused(t *testing.T) {
	cluster := newCluster(t)
	p := newProducer(t, cluster.Client(t), unasked(t))
	never := func(context.Context, *txn.Tx) (txn.State, error) {
		t.Error("called")
		return txn.Commit, nil
	}
	delayed := order("a")
	delayed.Delay = rocketmq.DelayLevel(1)
	for name, c := range map[string]struct {
		m    *rocketmq.Message
		want error
	}{
		"nil":      {nil, rocketmq.ErrInvalidMessage},
		"no body":  {&rocketmq.Message{Topic: "orders"}, rocketmq.ErrInvalidMessage},
		"delayed":  {delayed, rocketmq.ErrInvalidMessage},
		"no topic": {&rocketmq.Message{Topic: "oders", Body: []byte("x")}, rocketmq.ErrTopicNotFound},
	} {
		res, err := p.Send(t.Context(), c.m, never)
		require.ErrorIs(t, err, c.want, name)
		require.Zero(t, res, name)
	}
	_, err := p.Send(t.Context(), order("a"), nil)
	require.ErrorIs(t, err, rocketmq.ErrInvalidMessage)
	require.Zero(t, cluster.Undecided())
}

func TestOptions(t *testing.T) {
	cluster := newCluster(t)
	cl := cluster.Client(t)
	for name, o := range map[string][]txn.Option{
		"WithTimeout":          {txn.WithTimeout(time.Second, 2*time.Second)},
		"WithRetries":          {txn.WithRetries(17)},
		"WithImmunity":         {txn.WithImmunity(-1)},
		"WithCheckConcurrency": {txn.WithCheckConcurrency(0)},
		"WithCheckTimeout":     {txn.WithCheckTimeout(0)},
		"WithTopics":           {txn.WithTopics("a b")},
	} {
		_, err := txn.NewProducer(cl, "shop", says(txn.Commit), o...)
		require.ErrorIs(t, err, rocketmq.ErrInvalidOption)
		require.ErrorContains(t, err, name)
	}
	_, err := txn.NewProducer(cl, "", nil)
	require.ErrorContains(t, err, "group")
	require.ErrorContains(t, err, "no checker")
	_, err = txn.NewProducer(nil, "shop", says(txn.Commit))
	require.Error(t, err)
	_, err = txn.NewListenerProducer(cl, "shop", nil)
	require.ErrorIs(t, err, rocketmq.ErrInvalidOption)
	require.NoError(t, cl.Close(t.Context()))
	_, err = txn.NewProducer(cl, "shop", says(txn.Commit))
	require.ErrorIs(t, err, rocketmq.ErrClosed)
}

// TestC23_UnknownThenChecked: not before the time of the producer is over, then
// at once, and every id is the one of the send.
func TestC23_UnknownThenChecked(t *testing.T) {
	cluster := newCluster(t)
	cl := cluster.Client(t)
	asked := make(chan *rocketmq.MessageView, 10)
	p := newProducer(t, cl, func(_ context.Context, half *rocketmq.MessageView) (txn.State, error) {
		asked <- half
		return txn.Commit, nil
	})
	body := strings.Repeat("compressible ", 1000)
	m := order(body)
	m.Properties = map[string]string{"city": "Paris"}
	m.ShardingKey = "k"
	m.Keys = []string{"a", "b"}
	res, err := p.Send(t.Context(), m, local(txn.Unknown, nil))
	require.NoError(t, err)
	require.Equal(t, txn.Unknown, res.State)
	cluster.Advance(6*time.Second - time.Millisecond)
	require.Empty(t, asked)
	cluster.Advance(time.Millisecond)
	half := <-asked
	require.Equal(t, []string{res.MessageID, res.TransactionID, res.OffsetID}, []string{half.ID, half.TransactionID, half.OffsetID})
	require.Equal(t, []any{"orders", "paid", []string{"a", "b"}, "k", body}, []any{half.Topic, half.Tag, half.Keys, half.ShardingKey, string(half.Body)})
	require.Equal(t, map[string]string{"city": "Paris"}, half.Properties.User())
	require.Equal(t, res.Queue, half.Queue)

	got := make(chan *rocketmq.MessageView, 10)
	c, err := consumer.NewPush(cl, "billing", consumer.Subscribe("orders", selector.Tags("paid"), consumer.Each(
		func(_ context.Context, m *rocketmq.MessageView) error {
			got <- m
			return nil
		})), consumer.StartFrom(rocketmq.Earliest()))
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- c.Run(context.Background()) }()
	v := <-got
	require.Equal(t, []any{res.MessageID, res.TransactionID, res.Queue, body}, []any{v.ID, v.TransactionID, v.Queue, string(v.Body)})
	require.Equal(t, map[string]string{"city": "Paris"}, v.Properties.User(), "nothing of the half message")
	cluster.Advance(time.Hour)
	require.Empty(t, asked)
	require.NoError(t, c.Close(t.Context()))
	require.NoError(t, <-ended)
	require.Empty(t, got, "once")
	require.Len(t, cluster.Messages("orders"), 1)
}

// TestUnknownAgainAndAgain: a check that cannot tell is repeated, and the
// message is given up at last.
func TestUnknownAgainAndAgain(t *testing.T) {
	cluster := newCluster(t)
	times := make(chan time.Duration, 100)
	p := newProducer(t, cluster.Client(t), func(context.Context, *rocketmq.MessageView) (txn.State, error) {
		times <- cluster.Now().Sub(start)
		return txn.Unknown, nil
	}, txn.WithImmunity(9500*time.Millisecond))
	_, err := p.Begin(t.Context(), order("a"))
	require.NoError(t, err)
	cluster.Advance(time.Hour)
	require.Len(t, times, 15)
	for i := range 15 {
		require.Equal(t, 10*time.Second+time.Duration(i)*30*time.Second, <-times)
	}
	require.Equal(t, []string{"a"}, bodies(cluster, "TRANS_CHECK_MAX_TIME_TOPIC"))
	require.Zero(t, cluster.Undecided())
	require.Empty(t, cluster.Messages("orders"))
}

func TestNamespace(t *testing.T) {
	cluster := newCluster(t)
	cluster.CreateTopic("ns%orders", 1)
	asked := make(chan *rocketmq.MessageView, 1)
	p := newProducer(t, cluster.Client(t, rocketmq.WithNamespace("ns")), func(_ context.Context, half *rocketmq.MessageView) (txn.State, error) {
		asked <- half
		return txn.Commit, nil
	}, txn.WithTopics("orders"))
	res, err := p.Send(t.Context(), order("a"), local(txn.Commit, nil))
	require.NoError(t, err)
	require.Equal(t, "orders", res.Queue.Topic)
	_, err = p.Begin(t.Context(), order("b"))
	require.NoError(t, err)
	require.Equal(t, 1, cluster.CheckTransactions())
	require.Equal(t, "orders", (<-asked).Topic)
	eventually(t, "committed", func() bool { return cluster.Undecided() == 0 })
	require.Equal(t, []string{"a", "b"}, bodies(cluster, "ns%orders"))
	require.Empty(t, cluster.Messages("orders"))
}

// TestDecisionsThatAreNotTaken: the broker's answer counts.
func TestDecisionsThatAreNotTaken(t *testing.T) {
	for name, c := range map[string]struct {
		fault func(r *testbroker.Rule) *testbroker.Handle
		after bool
		state txn.State
		want  error // nil: it works all the same
		seen  []string
		left  int
	}{
		"busy once":             {func(r *testbroker.Rule) *testbroker.Handle { return r.Times(1).Reply(rocketmq.CodeSystemBusy, "busy") }, false, txn.Commit, nil, []string{"a"}, 0},
		"always busy":           {func(r *testbroker.Rule) *testbroker.Handle { return r.Reply(rocketmq.CodeSystemBusy, "busy") }, false, txn.Commit, rocketmq.ErrBusy, []string{}, 1},
		"refused":               {func(r *testbroker.Rule) *testbroker.Handle { return r.Reply(rocketmq.CodeSystemError, "no") }, false, txn.Commit, nil, []string{}, 1},
		"commit, answer lost":   {func(r *testbroker.Rule) *testbroker.Handle { return r.Times(1).Disconnect() }, true, txn.Commit, rocketmq.ErrConnection, []string{"a"}, 0},
		"commit lost":           {func(r *testbroker.Rule) *testbroker.Handle { return r.Times(1).Disconnect() }, false, txn.Commit, rocketmq.ErrConnection, []string{}, 1},
		"rollback, answer lost": {func(r *testbroker.Rule) *testbroker.Handle { return r.Times(1).Disconnect() }, true, txn.Rollback, nil, []string{}, 0},
		"rollback lost":         {func(r *testbroker.Rule) *testbroker.Handle { return r.Times(1).Disconnect() }, false, txn.Rollback, nil, []string{}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := newCluster(t)
			p := newProducer(t, cluster.Client(t), says(c.state))
			r := cluster.On(testbroker.EndTransaction)
			if c.after {
				r = r.AfterApply()
			}
			h := c.fault(r)
			res, err := p.Send(t.Context(), order("a"), local(c.state, nil))
			var refused *rocketmq.BrokerError
			switch {
			case c.want != nil:
				require.ErrorIs(t, err, c.want)
				require.ErrorContains(t, err, res.MessageID)
				require.Equal(t, txn.Unknown, res.State)
			case name == "refused":
				require.ErrorAs(t, err, &refused)
				require.Equal(t, "no", refused.Remark)
				require.Equal(t, 1, h.Hits())
			default:
				require.NoError(t, err)
				require.Equal(t, c.state, res.State)
			}
			require.Equal(t, c.seen, bodies(cluster, "orders"))
			require.Equal(t, c.left, cluster.Undecided())
			h.Remove()
			// What was lost is found out.
			cluster.Advance(time.Minute)
			eventually(t, "decided", func() bool {
				cluster.Advance(30 * time.Second)
				return cluster.Undecided() == 0
			})
			want := []string{}
			if c.state == txn.Commit {
				want = append(want, "a")
			}
			require.Equal(t, want, bodies(cluster, "orders"))
		})
	}
}

// TestHalfMessageThatIsNotSafe is taken back before anything happens.
func TestHalfMessageThatIsNotSafe(t *testing.T) {
	cluster := newCluster(t)
	p := newProducer(t, cluster.Client(t), unasked(t))
	cluster.On(testbroker.SendMessage).AfterApply().Times(1).Corrupt(func(b []byte) []byte {
		// FLUSH_DISK_TIMEOUT, with all fields of an answer
		b = bytes.Replace(b, []byte(`"code":0`), []byte(`"code":10`), 1)
		binary.BigEndian.PutUint32(b, uint32(len(b)-4))
		binary.BigEndian.PutUint32(b[4:], uint32(len(b)-8))
		return b
	})
	res, err := p.Send(t.Context(), order("a"), func(context.Context, *txn.Tx) (txn.State, error) {
		t.Error("called")
		return txn.Commit, nil
	})
	require.ErrorIs(t, err, rocketmq.ErrNotDurable)
	require.Zero(t, res)
	require.Zero(t, cluster.Undecided())
	require.Empty(t, cluster.Messages("orders"))
}

type listener struct{ cluster *testbroker.Cluster }

func (l listener) ExecuteLocalTransaction(_ context.Context, m *rocketmq.Message, tx *txn.Tx) (txn.State, error) {
	if string(m.Body) == "later" {
		return txn.Unknown, nil
	}
	return txn.Commit, nil
}

func (l listener) CheckLocalTransaction(context.Context, *rocketmq.MessageView) (txn.State, error) {
	return txn.Commit, nil
}

func TestListener(t *testing.T) {
	cluster := newCluster(t)
	p, err := txn.NewListenerProducer(cluster.Client(t), "shop", listener{cluster})
	require.NoError(t, err)
	for _, body := range []string{"now", "later"} {
		_, err := p.SendMessageInTransaction(t.Context(), order(body))
		require.NoError(t, err)
	}
	require.Equal(t, []string{"now"}, bodies(cluster, "orders"))
	cluster.Advance(6 * time.Second)
	require.Equal(t, []string{"later", "now"}, sorted(bodies(cluster, "orders")))
	require.NoError(t, p.Close(t.Context()))
}
