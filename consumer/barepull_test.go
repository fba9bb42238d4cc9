package consumer_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
	"github.com/gorocketmq/rocketmq/selector"
	"github.com/gorocketmq/rocketmq/testbroker"
)

func newPull(t testing.TB, cl *rocketmq.Client) *consumer.Pull {
	t.Helper()
	p, err := consumer.NewPull(cl, "G")
	require.NoError(t, err)
	return p
}

func TestPullOnOurBroker(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := testbroker.New(t, testbroker.Topic("T", 1))
	cl := b.Client(t)
	p := newPull(t, cl)
	q := rocketmq.Queue{Topic: "T", Broker: b.Brokers()[0]}
	page, err := p.Pull(ctx, consumer.Request{Queue: q})
	require.NoError(t, err)
	require.Equal(t, consumer.Page{Status: consumer.PullNoNew}, page)
	sendMany(t, cl, "T", 0, 50)
	page, err = p.Pull(ctx, consumer.Request{Queue: q})
	require.NoError(t, err)
	require.Len(t, page.Messages, 32)
	require.Equal(t, consumer.Page{Messages: page.Messages, Next: 32, Max: 50}, page)
	for i, m := range page.Messages {
		require.EqualValues(t, i, m.Offset)
		require.Equal(t, fmt.Sprint(i), string(m.Body))
		require.Equal(t, []string{"k"}, m.Keys)
		require.Equal(t, q, m.Queue)
	}
	page, err = p.Pull(ctx, consumer.Request{Queue: q, Offset: page.Next, Max: 5, Expr: selector.Tags("t1")})
	require.NoError(t, err)
	for _, m := range page.Messages {
		require.Equal(t, "t1", m.Tag)
	}
	require.Equal(t, []string{"33", "35", "37", "39", "41"}, bodiesOf(page.Messages))
	page, err = p.Pull(ctx, consumer.Request{Queue: q, Expr: selector.Tags("none")})
	require.NoError(t, err)
	require.Equal(t, consumer.PullNoMatch, page.Status)
	require.EqualValues(t, 50, page.Next)

	low, high, err := p.Range(ctx, q)
	require.NoError(t, err)
	require.Equal(t, []int64{0, 50}, []int64{low, high})
	seventh := b.Messages("T")[7]
	off, err := p.SearchOffset(ctx, q, seventh.StoredAt)
	require.NoError(t, err)
	require.LessOrEqual(t, off, int64(7))
	require.False(t, b.Messages("T")[off].StoredAt.Before(seventh.StoredAt))

	_, found, err := p.Committed(ctx, q)
	require.NoError(t, err)
	require.False(t, found, "none is none, and not 0")
	for _, off := range []int64{40, 12} {
		require.NoError(t, p.Commit(ctx, q, off))
		at, found, err := p.Committed(ctx, q)
		require.NoError(t, err)
		require.True(t, found)
		require.Equal(t, off, at)
	}

	page, err = p.Pull(ctx, consumer.Request{Queue: q, Offset: 51})
	var oe *rocketmq.OffsetError
	require.ErrorAs(t, err, &oe)
	require.ErrorIs(t, err, rocketmq.ErrOffset)
	require.Equal(t, rocketmq.OffsetError{Queue: q, Asked: 51, Max: 50}, *oe)
	require.Equal(t, consumer.Page{Status: consumer.PullOffsetMoved, Next: 50, Max: 50}, page)

	_, err = p.Pull(ctx, consumer.Request{Queue: rocketmq.Queue{Topic: "absent", Broker: q.Broker}})
	require.ErrorIs(t, err, rocketmq.ErrTopicNotFound)
	_, err = p.Pull(ctx, consumer.Request{Queue: rocketmq.Queue{Topic: "T", Broker: "elsewhere"}})
	require.ErrorIs(t, err, rocketmq.ErrNoQueue)
	var be *rocketmq.BrokerError
	_, err = p.Pull(ctx, consumer.Request{Queue: rocketmq.Queue{Topic: "T", Broker: q.Broker, ID: 9}})
	require.ErrorAs(t, err, &be)
	require.Empty(t, b.Members("G"), "the group is not joined")
}

// With a time to wait the broker holds the pull until a message comes, or the time
// is over.
func TestPullWaits(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		p := newPull(t, b.client())
		ctx := context.Background()
		began := time.Now()
		page, err := p.Pull(ctx, consumer.Request{Queue: tq(0), Wait: 20 * time.Second})
		require.NoError(t, err)
		require.Equal(t, consumer.PullNoNew, page.Status)
		require.Equal(t, 20*time.Second, time.Since(began))
		time.AfterFunc(5*time.Second, func() { b.put("T", 0, "m") })
		began = time.Now()
		page, err = p.Pull(ctx, consumer.Request{Queue: tq(0), Wait: 20 * time.Second})
		require.NoError(t, err)
		require.Equal(t, []string{"m"}, bodiesOf(page.Messages))
		require.Equal(t, 5*time.Second, time.Since(began))
		_, err = p.Pull(within(t, time.Second), consumer.Request{Queue: tq(0), Offset: 1, Wait: 20 * time.Second})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		ended, cancel := context.WithCancel(ctx)
		time.AfterFunc(time.Second, cancel)
		_, err = p.Pull(ended, consumer.Request{Queue: tq(0), Offset: 1, Wait: 20 * time.Second})
		require.ErrorIs(t, err, context.Canceled)
		synctest.Wait()
		require.Empty(t, b.beats)
	})
}

// A broker that is too busy points to another one of its name, and one that does
// not answer is given up for the master.
func TestPullGoesWhereTheBrokerSays(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		ctx := context.Background()
		b.topic("T", 1)
		ln, err := b.net.Listen("replica:10911")
		require.NoError(t, err)
		var master, other atomic.Int32
		var fail atomic.Bool
		replica := remoting.NewServer(remoting.ServerConfig{Config: remoting.Config{Handler: func(r *remoting.Request) {
			other.Add(1)
			if fail.Load() {
				r.Drop()
				return
			}
			r.Reply(wire.RespPullNotFound, "", &wire.PullResponse{SuggestBrokerID: 1, NextOffset: 7, MaxOffset: 7}, nil)
		}}})
		require.NoError(t, replica.Serve(ln))
		defer func() { _ = replica.Close(ctx) }()
		b.on(wire.ReqGetRouteInfoByTopic, func(r *remoting.Request) bool {
			d := wire.RouteData{
				Queues:  []wire.QueueData{{BrokerName: "b", ReadQueues: 1, WriteQueues: 1, Perm: wire.PermRead}},
				Brokers: []wire.BrokerData{{Cluster: "c", BrokerName: "b", Addrs: map[int64]string{0: fakeBroker, 1: "replica:10911"}}},
			}
			r.Reply(wire.RespSuccess, "", nil, d.AppendStrictJSON(nil))
			return true
		})
		b.on(wire.ReqPullMessage, func(r *remoting.Request) bool {
			master.Add(1)
			r.Reply(wire.RespPullNotFound, "", &wire.PullResponse{SuggestBrokerID: 1, NextOffset: 7, MaxOffset: 7}, nil)
			return true
		})
		p := newPull(t, b.client())
		pull := func() error {
			_, err := p.Pull(ctx, consumer.Request{Queue: tq(0), Offset: 7})
			return err
		}
		for range 3 {
			require.NoError(t, pull())
		}
		require.Equal(t, []int32{1, 2}, []int32{master.Load(), other.Load()})
		fail.Store(true)
		require.ErrorIs(t, pull(), rocketmq.ErrTimeout)
		require.NoError(t, pull())
		require.EqualValues(t, 2, master.Load())
	})
}

func TestPullOfWhatCannotBeRead(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		ctx := context.Background()
		b.topic("T", 1)
		b.put("T", 0, "good")
		b.put("T", 0, "bad", func(r *wire.Record) { r.SysFlag |= wire.SysCompressed })
		b.put("T", 0, "good")
		p := newPull(t, b.client())
		page, err := p.Pull(ctx, consumer.Request{Queue: tq(0)})
		var be *consumer.BodyError
		require.ErrorAs(t, err, &be)
		require.Equal(t, "bad", string(be.Message.Body))
		require.Len(t, page.Messages, 1)
		require.EqualValues(t, 1, page.Next)
		page, err = p.Pull(ctx, consumer.Request{Queue: tq(0), Offset: be.Message.Offset + 1})
		require.NoError(t, err)
		require.Len(t, page.Messages, 1)

		b.on(wire.ReqPullMessage, func(r *remoting.Request) bool {
			b.mu.Lock()
			body := append([]byte(nil), b.topics["T"].queues[0][0].record...)
			b.mu.Unlock()
			r.Reply(wire.RespSuccess, "", &wire.PullResponse{NextOffset: 3, MaxOffset: 3}, append(body, "rubbish"...))
			return true
		})
		page, err = p.Pull(ctx, consumer.Request{Queue: tq(0)})
		require.ErrorContains(t, err, "offset 1")
		require.Len(t, page.Messages, 1)
		require.EqualValues(t, 1, page.Next)
	})
}

func TestPullRequestIsChecked(t *testing.T) {
	bubble(t, func(t *testing.T, b *fake) {
		ctx := context.Background()
		cl := b.client()
		p := newPull(t, cl)
		before := goroutines(t)
		for _, r := range []consumer.Request{
			{}, {Queue: rocketmq.Queue{Topic: "T"}}, {Queue: tq(-1)}, {Queue: tq(0), Offset: -1}, {Queue: tq(0), Max: -1},
			{Queue: tq(0), Wait: -1}, {Queue: tq(0), Expr: selector.SQL("a >")},
		} {
			_, err := p.Pull(ctx, r)
			require.ErrorIs(t, err, rocketmq.ErrInvalidOption, r)
		}
		_, _, err := p.Range(ctx, rocketmq.Queue{})
		require.ErrorIs(t, err, rocketmq.ErrInvalidOption)
		require.ErrorIs(t, p.Commit(ctx, tq(0), -1), rocketmq.ErrInvalidOption)
		require.Equal(t, before, goroutines(t), "nothing runs in the background")
		for status, want := range map[consumer.PullStatus]string{
			consumer.PullFound: "found", consumer.PullNoNew: "no new message", consumer.PullNoMatch: "no matching message",
			consumer.PullOffsetMoved: "offset moved", 9: "pull status 9",
		} {
			require.Equal(t, want, status.String())
		}
		require.NoError(t, cl.Close(ctx))
		_, err = p.Pull(ctx, consumer.Request{Queue: tq(0)})
		require.ErrorIs(t, err, rocketmq.ErrClosed)
	})
}
