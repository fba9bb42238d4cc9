package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/producer"
	"github.com/gorocketmq/rocketmq/selector"
	"github.com/gorocketmq/rocketmq/testbroker"
)

// tally is what members of a group that poll have got.
type tally struct {
	want int
	all  chan struct{} // closed when so many different messages have come

	mu        sync.Mutex
	got       map[string][]string // names of those who got a message, by body
	count     map[string]int      // of messages, by name
	committed map[string]string   // who has committed it
}

func newTally(want int) *tally {
	return &tally{want: want, all: make(chan struct{}), got: map[string][]string{}, count: map[string]int{}, committed: map[string]string{}}
}

func (y *tally) take(name string, msgs []*rocketmq.MessageView) int {
	y.mu.Lock()
	defer y.mu.Unlock()
	for _, m := range msgs {
		y.got[string(m.Body)] = append(y.got[string(m.Body)], name)
		if len(y.got) == y.want && len(y.got[string(m.Body)]) == 1 {
			close(y.all)
		}
	}
	y.count[name] += len(msgs)
	return y.count[name]
}

// poll polls and commits until ctx ends. half is called when the member has had so
// many messages.
func (y *tally) poll(ctx context.Context, l *consumer.LitePull, name string, half int, reached func()) error {
	for {
		msgs, err := l.Poll(ctx)
		if err != nil {
			return err
		}
		count := y.take(name, msgs)
		if err := l.Commit(ctx, msgs[0].Queue); err != nil && !errors.Is(err, rocketmq.ErrRevoked) {
			return err
		}
		y.mu.Lock()
		for _, m := range msgs {
			if y.committed[string(m.Body)] == "" {
				y.committed[string(m.Body)] = name
			}
		}
		y.mu.Unlock()
		if count >= half {
			reached()
		}
	}
}

func sendBatches(t testing.TB, cl *rocketmq.Client, n int) {
	t.Helper()
	p, err := producer.New(cl, patient)
	require.NoError(t, err)
	for i := 0; i < n; i += 100 {
		var batch []*rocketmq.Message
		for k := range 100 {
			batch = append(batch, &rocketmq.Message{Topic: "T", Body: strconv.AppendInt(nil, int64(i+k), 10)})
		}
		_, err := p.SendBatch(context.Background(), batch)
		require.NoError(t, err)
	}
	require.NoError(t, p.Close(context.Background()))
}

// TestC51_TwoPollersOneGroup: 8 queues, 10,000 messages, two members that poll and
// commit, of which one may die on the way.
func TestC51_TwoPollersOneGroup(t *testing.T) {
	const n = 10_000
	for _, kill := range []bool{false, true} {
		t.Run(fmt.Sprint("kill=", kill), func(t *testing.T) {
			t.Parallel()
			b := testbroker.New(t, testbroker.Brokers(2), testbroker.Topic("T", 4))
			y := newTally(n)
			ctx, end := context.WithCancel(context.Background())
			defer end()
			join := func(name string, cl *rocketmq.Client, half int, reached func()) (*consumer.LitePull, chan error) {
				l := newLite(t, cl, toT(), earliest, consumer.WithManualCommit())
				require.NoError(t, l.Ready(ctx))
				done := make(chan error, 1)
				go func() { done <- y.poll(ctx, l, name, half, reached) }()
				return l, done
			}
			cab := &cable{dial: (&net.Dialer{}).DialContext}
			dying, err := rocketmq.NewClient(append(b.ClientOptions(), rocketmq.WithDialer(cab.Dial))...)
			require.NoError(t, err)
			half := make(chan struct{})
			first, done := join("first", b.Client(t), n+1, nil)
			second, gone := join("second", dying, 1000, sync.OnceFunc(func() { close(half) }))
			require.Eventually(t, func() bool { return len(first.Assignment()) == 4 && len(second.Assignment()) == 4 }, patience, time.Millisecond)
			sendBatches(t, b.Client(t), n)
			if kill {
				<-half
				cab.Cut()
				require.Eventually(t, func() bool { return len(first.Assignment()) == 8 }, patience, time.Millisecond)
			}
			select {
			case <-y.all:
			case <-time.After(60 * time.Second):
				t.Fatal("not all messages in a minute")
			}
			end()
			require.ErrorIs(t, <-done, context.Canceled)
			if err := <-gone; !kill {
				require.ErrorIs(t, err, context.Canceled)
			}
			for body, names := range y.got {
				if kill && slices.Equal(names, []string{"second", "first"}) {
					require.NotEqual(t, "second", y.committed[body], "message %s came again though it was committed", body)
				} else {
					require.Len(t, names, 1, "message %s", body)
				}
			}
			require.NotZero(t, y.count["first"])
			require.NotZero(t, y.count["second"])
			if err := dying.Close(context.Background()); !kill {
				require.NoError(t, err) // else there is nobody whom it could tell
			}
		})
	}
}

// C33 for both kinds of LitePull: 10 old messages, minimum 0, and an empty topic.
func TestC33_StartPolicyOfALitePull(t *testing.T) {
	b := testbroker.New(t)
	cl := b.Client(t)
	for name, position := range map[string]func(between time.Time) rocketmq.Position{
		"earliest-0": func(time.Time) rocketmq.Position { return rocketmq.Earliest() },
		"latest-0":   func(time.Time) rocketmq.Position { return rocketmq.Latest() },
		"strict-10":  func(time.Time) rocketmq.Position { return rocketmq.StrictLatest() },
		"offset-7":   func(time.Time) rocketmq.Position { return rocketmq.AtOffset(7) },
		"between-5":  rocketmq.AtTime,
	} {
		for _, assign := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " assign=", assign), func(t *testing.T) {
				_, text, _ := strings.Cut(name, "-")
				first, err := strconv.Atoi(text)
				require.NoError(t, err)
				topic := strings.ReplaceAll(fmt.Sprint(name, assign), "=", "")
				b.CreateTopic(topic, 1)
				ctx := context.Background()
				sendMany(t, cl, topic, 0, 5)
				msgs := b.Messages(topic)
				between := msgs[4].StoredAt.Add(time.Millisecond)
				for time.Now().Before(between.Add(time.Millisecond)) {
					time.Sleep(time.Millisecond) // stored times are milliseconds
				}
				sendMany(t, cl, topic, 5, 10)
				where := consumer.SubscribeTo(topic, selector.All)
				if assign {
					where = consumer.AssignTo(msgs[0].Queue)
				}
				l, err := consumer.NewLitePull(cl, "G"+topic, where, consumer.StartFrom(position(between)))
				require.NoError(t, err)
				require.NoError(t, l.Ready(ctx))
				sendMany(t, cl, topic, 10, 11)
				at := first
				for at < 11 {
					msgs, err := l.Poll(within(t, 20*time.Second))
					require.NoError(t, err)
					for _, m := range msgs {
						require.EqualValues(t, at, m.Offset)
						at++
					}
				}
				require.NoError(t, l.Commit(ctx))
				require.NoError(t, l.Close(ctx))
				off, ok := b.Offset("G"+topic, msgs[0].Queue)
				require.True(t, ok)
				require.EqualValues(t, 11, off)
			})
		}
	}
}
