package pop

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/broker/groups"
	"github.com/gorocketmq/rocketmq/internal/broker/offsets"
	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
	"github.com/gorocketmq/rocketmq/internal/broker/topics"
	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

var start = time.UnixMilli(1_700_000_000_000)

// bench is a service without a broker.
type bench struct {
	tb    testing.TB
	clock *clock.Manual
	store *store.Store
	s     *Service
}

// host is the rest of a broker.
type host struct {
	topics *topics.Table
	groups *groups.Table
}

func (h host) MayRead() string                            { return "" }
func (h host) Filter(_, _ []byte) (Filter, int32, string) { return nil, 0, "" }
func (h host) Group(name []byte) *wire.SubscriptionGroup  { g, _ := h.groups.Get(name); return g }
func (h host) RetryTopic(name string) *topics.Topic       { return h.topic(name) }
func (h host) DeadLetters(group string) *topics.Topic     { return h.topic(wire.DLQTopic(group)) }
func (h host) CountPut(store.PutResult)                   {}
func (h host) CountGot(int64, int64)                      {}
func (h host) topic(name string) *topics.Topic {
	t, _ := h.topics.Create(wire.TopicConfig{Name: name, ReadQueues: 1, WriteQueues: 1, Perm: 6})
	return t
}

func newBench(tb testing.TB) *bench {
	tb.Helper()
	x := &bench{tb: tb, clock: clock.NewManual(start)}
	h := host{topics.New(x.clock), groups.New(x.clock, true)}
	h.topic("T")
	h.Group([]byte("G"))
	x.s = New(Config{
		Broker: "broker-a", Cluster: "C", Clock: x.clock, Liveness: x.clock, Log: discard(), Topics: h.topics, Groups: h.groups,
		Offsets: offsets.New(x.clock), Host: h,
	})
	st, err := store.Open(store.Config{Dir: "/store", FS: mfile.NewMemory(), Clock: x.clock, OnArrival: func(a store.Arrival) { x.s.Arrived(a) }})
	require.NoError(tb, err)
	x.store = st
	tb.Cleanup(func() { require.NoError(tb, st.Close()) })
	return x
}

func (x *bench) start() {
	x.s.Start(x.store)
	x.tb.Cleanup(x.s.Stop)
}

func (x *bench) put(topic string, queue int32, body string, props ...string) {
	x.tb.Helper()
	m := &store.Message{Topic: []byte(topic), QueueID: queue, Body: []byte(body)}
	for i := 0; i < len(props); i += 2 {
		m.Properties = wire.AppendProperty(m.Properties, props[i], props[i+1])
	}
	res, _ := x.store.Put(m, nil)
	require.NoError(x.tb, res.Err)
}

func (x *bench) settle() {
	x.tb.Helper()
	require.NoError(x.tb, x.s.Settle(x.tb.Context()))
}

func (x *bench) again() int64 { return x.store.MaxOffset("%RETRY%G_T", 0) }

const ckText = `{"bm":0,"bn":"broker-a","c":"G","d":[0,2],"it":60000,"n":2,"pt":1700000000000,"q":0,"reviveTime":1700000060000,"ro":0,"so":0,"t":"T"}`

func TestReviveReadsWhatApacheWrites(t *testing.T) {
	for name, x := range map[string]struct {
		acks [][2]string
		want int64
	}{
		"nothing":    {nil, 2},
		"one":        {[][2]string{{"ack", `{"ao":2,"bn":"broker-a","c":"G","pt":1700000000000,"q":0,"so":0,"t":"T"}`}}, 1},
		"long names": {[][2]string{{"ack", `{"ackOffset":2,"consumerGroup":"G","popTime":1700000000000,"queueId":0,"startOffset":0,"topic":"T"}`}}, 1},
		"batch":      {[][2]string{{"bAck", `{"ao":-1,"aol":[0,2],"bn":"broker-a","c":"G","pt":1700000000000,"q":0,"so":0,"t":"T"}`}}, 0},
		"others": {[][2]string{
			{"ack", `{"ao":1,"bn":"broker-a","c":"G","pt":1700000000000,"q":0,"so":0,"t":"T"}`},  // not of the batch
			{"ack", `{"ao":2,"bn":"broker-a","c":"G","pt":1700000000001,"q":0,"so":0,"t":"T"}`},  // another time
			{"ack", `{"ao":2,"bn":"broker-a","c":"G2","pt":1700000000000,"q":0,"so":0,"t":"T"}`}, // another group
			{"ack", `{"ao":2,"bn":"broker-a","c":"G","pt":1700000000000,"q":1,"so":0,"t":"T"}`},  // another queue
			{"ack", `{"ao":2`}, {"bAck", ``}, {"ck", `nonsense`}, {"ck", `{}`}, {"", `{}`}, {"other", `{}`},
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			for _, body := range []string{"0", "1", "2"} {
				b.put("T", 0, body)
			}
			b.put(b.s.reviveTopic, 3, ckText, "TAGS", "ck")
			for _, a := range x.acks {
				b.put(b.s.reviveTopic, 3, a[1], "TAGS", a[0])
			}
			b.start()
			b.settle()
			at, ok, _ := b.s.NextVisible()
			require.Equal(t, x.want > 0, ok)
			if ok {
				require.Equal(t, start.Add(time.Minute).UnixMilli(), at.UnixMilli())
			}
			b.clock.Advance(time.Minute - time.Millisecond)
			b.settle()
			require.Zero(t, b.again())
			b.clock.Advance(time.Millisecond)
			b.settle()
			require.Equal(t, x.want, b.again())
			off, _ := b.s.cfg.Offsets.Offset([]byte(wire.GroupRevive), b.s.revives, 3)
			require.Equal(t, b.store.MaxOffset(b.s.reviveTopic, 3)-1, off, "everything is done with")
		})
	}
}

// Checkpoints of an Apache broker come by way of the timer, a second before
// their time, and their acks at that time.
func TestReviveWaitsForAcksThatTheTimerBrings(t *testing.T) {
	b := newBench(t)
	b.put("T", 0, "0")
	b.put("T", 0, "1")
	b.put("T", 0, "2")
	b.start()
	b.clock.Advance(59 * time.Second)
	b.put(b.s.reviveTopic, 0, ckText, "TAGS", "ck", wire.PropTimerOutMs, "1700000059000")
	b.clock.Advance(2 * time.Second)
	b.settle()
	require.Zero(t, b.again())
	b.put(b.s.reviveTopic, 0, `{"ao":0,"bn":"broker-a","c":"G","pt":1700000000000,"q":0,"so":0,"t":"T"}`, "TAGS", "ack", wire.PropTimerOutMs, "1700000060000")
	b.clock.Advance(2 * time.Second)
	b.settle()
	require.EqualValues(t, 1, b.again())
}

// A log that lost its end in a crash is read from its new end on.
func TestReviveGoesBackWithItsQueue(t *testing.T) {
	b := newBench(t)
	b.put("T", 0, "0")
	b.s.cfg.Offsets.Commit([]byte(wire.GroupRevive), b.s.revives, 2, 500)
	b.start()
	b.settle()
	b.put(b.s.reviveTopic, 2, ckText, "TAGS", "ck")
	b.clock.Advance(time.Minute)
	b.settle()
	require.EqualValues(t, 1, b.again())
}

// Records that come without notice, as those of a timer, are seen within a
// second.
func TestReviveLooksEverySecond(t *testing.T) {
	b := newBench(t)
	b.put("T", 0, "0")
	b.start()
	b.settle()
	b.put(b.s.reviveTopic, 2, ckText, "TAGS", "ck")
	require.NoError(t, b.store.WaitDispatched(t.Context()))
	_, ok, changed := b.s.NextVisible()
	require.False(t, ok)
	b.clock.Advance(time.Second)
	for !ok {
		select {
		case <-changed:
		case <-t.Context().Done():
			t.Fatal("not seen")
		}
		_, ok, changed = b.s.NextVisible()
	}
}

func TestMessagesThatAreGoneAreSkipped(t *testing.T) {
	b := newBench(t)
	b.put(b.s.reviveTopic, 2, ckText, "TAGS", "ck") // but there are no messages
	b.start()
	b.clock.Advance(time.Hour)
	b.settle()
	require.Zero(t, b.again())
	_, ok, _ := b.s.NextVisible()
	require.False(t, ok)
}

func TestLocksTellWhoWasRefused(t *testing.T) {
	l := locks{busy: map[queueKey]bool{}}
	k := queueKey{"T", "G", 1}
	require.False(t, l.taken(k))
	require.True(t, l.try(k))
	require.True(t, l.try(queueKey{"T", "G", 2}))
	require.False(t, l.release(k), "nobody wanted it")
	require.True(t, l.try(k))
	require.False(t, l.try(k))
	require.True(t, l.release(k))
	require.True(t, l.try(k))
	require.True(t, l.taken(k))
	require.True(t, l.release(k))
}

func TestModes(t *testing.T) {
	var m Modes
	require.Equal(t, wire.ModePull, m.Get("T", "G").Mode)
	m.Set(wire.RequestMode{Group: "G", Topic: "T", Mode: wire.ModePop, ShareQueues: 2})
	var again Modes
	require.NoError(t, again.Decode(m.Encode()))
	require.Equal(t, m.Get("T", "G"), again.Get("T", "G"))
	require.EqualValues(t, 2, again.Get("T", "G").ShareQueues)
	again.Set(wire.RequestMode{Group: "G2", Topic: "T", Mode: wire.ModePop})
	require.Equal(t, wire.ModePop, again.Get("T", "G2").Mode)
	require.Equal(t, wire.ModePull, m.Get("T", "G2").Mode)
	require.Error(t, again.Decode([]byte("{")))
}
