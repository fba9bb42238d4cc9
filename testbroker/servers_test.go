package testbroker_test

import (
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/wire"
	"github.com/gorocketmq/rocketmq/producer"
	"github.com/gorocketmq/rocketmq/testbroker"
)

// TestRestartKeepsMessagesAndOffsets: cleanly and after a kill, in memory and
// on disk, across a roll-over of the commit log.
func TestRestartKeepsMessagesAndOffsets(t *testing.T) {
	for _, place := range []string{"memory", "disk"} {
		for _, end := range []string{"stop", "kill"} {
			t.Run(place+"/"+end, func(t *testing.T) {
				opts := []testbroker.Option{testbroker.Topic("T", 2), testbroker.SegmentSize(64 << 10)}
				if place == "disk" {
					opts = append(opts, testbroker.Dir(t.TempDir()))
				}
				c := testbroker.New(t, opts...)
				got := newBodies()
				stop := consume(t, c.Client(t), "G", "T", got)
				p := newProducer(t, c)
				for i := range 30 {
					body := append(make([]byte, 4<<10), fmt.Sprint("m-", i)...)
					_, err := p.Send(t.Context(), &rocketmq.Message{Topic: "T", Body: body})
					require.NoError(t, err)
				}
				got.await(t, 30)
				stop()
				before := c.Messages("T")
				require.Len(t, before, 30)

				if end == "kill" {
					// What a consumer commits reaches the disk with a delay, as
					// in Apache: a kill may take it back.
					c.Kill("broker-a", 0)
					require.Empty(t, c.Messages("T"), "nobody there")
				}
				c.Restart("broker-a", 0)
				require.Equal(t, before, c.Messages("T"))
				if end == "stop" {
					require.Zero(t, c.Lag("G", "T"))
				}
				send(t, newProducer(t, c), "T", "later", 1)
				require.Len(t, c.Messages("T"), 31)
			})
		}
	}
}

func TestDirIsFoundAgain(t *testing.T) {
	dir := t.TempDir()
	f := &fakeTB{T: t}
	first := testbroker.New(f, testbroker.Dir(dir), testbroker.Topic("T", 3))
	send(t, newProducer2(t, f, first), "T", "m", 5)
	want := first.Messages("T")
	f.end()
	require.Empty(t, f.fatal)

	again := testbroker.New(t, testbroker.Dir(dir))
	got := again.Messages("T")
	require.Len(t, got, 5)
	for i := range got {
		require.Equal(t, want[i].ID, got[i].ID)
		require.Equal(t, want[i].Body, got[i].Body)
	}
	qs, err := newProducer(t, again).Queues(t.Context(), "T")
	require.NoError(t, err)
	require.Len(t, qs, 3, "the topic's configuration, too")
}

func newProducer2(t *testing.T, tb testbroker.TB, c *testbroker.Cluster) *producer.Producer {
	t.Helper()
	p, err := producer.New(c.Client(tb), patient())
	require.NoError(t, err)
	return p
}

// TestC09_NameServerRestart: the only name server is restarted while messages
// flow. No send fails and none is lost.
func TestC09_NameServerRestart(t *testing.T) {
	c := testbroker.New(t, testbroker.Topic("T", 2))
	got := newBodies()
	stop := consume(t, c.Client(t), "G", "T", got)
	p := newProducer(t, c)
	var sent atomic.Int64
	quit, done := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-quit:
				done <- nil
				return
			default:
			}
			n := sent.Add(1)
			if _, err := p.Send(t.Context(), &rocketmq.Message{Topic: "T", Body: fmt.Appendf(nil, "m-%d", n)}); err != nil {
				done <- err
				return
			}
		}
	}()
	got.await(t, 100)
	c.KillNameServer(0)
	got.await(t, got.count()+500) // clients keep the last route
	c.RestartNameServer(0)
	got.await(t, got.count()+500)
	close(quit)
	require.NoError(t, <-done)
	got.await(t, int(sent.Load()))
	stop()

	// The new name server serves clients that have never seen the old one.
	qs, err := newProducer(t, c).Queues(t.Context(), "T")
	require.NoError(t, err)
	require.Len(t, qs, 2)
}

// TestC09_AutoCreateSwitchedOff: a broker that is restarted with auto-create
// off is no longer listed for the default topic, whichever way it went.
func TestC09_AutoCreateSwitchedOff(t *testing.T) {
	for _, kill := range []bool{false, true} {
		t.Run(fmt.Sprint("kill=", kill), func(t *testing.T) {
			c := testbroker.New(t, testbroker.AutoCreate(true), testbroker.Topic("T", 1), testbroker.NameServers(2))
			require.Equal(t, []int32{0, 0}, routeCodes(t, c, wire.TopicDefault))
			c.SetAutoCreate(false)
			if kill {
				c.Kill("broker-a", 0)
			}
			c.Restart("broker-a", 0)
			require.Equal(t, []int32{wire.RespTopicNotExist, wire.RespTopicNotExist}, routeCodes(t, c, wire.TopicDefault))
			require.Equal(t, []int32{0, 0}, routeCodes(t, c, "T"))
			p := newProducer(t, c, producer.WithAutoCreate(2))
			_, err := p.Send(t.Context(), &rocketmq.Message{Topic: "New", Body: []byte("x")})
			require.ErrorIs(t, err, rocketmq.ErrTopicNotFound)
		})
	}
}

// TestC03_FirstNameServerIsABlackHole: it takes connections and never answers.
func TestC03_FirstNameServerIsABlackHole(t *testing.T) { synctest.Test(t, firstNameServerIsABlackHole) }

func firstNameServerIsABlackHole(t *testing.T) {
	c := testbroker.New(t, testbroker.Virtual(), testbroker.NameServers(2), testbroker.Topic("T", 1), testbroker.Topic("U", 1))
	c.Freeze("namesrv-0")
	cl := c.Client(t)
	p, err := producer.New(cl, producer.WithTimeout(10*time.Second, 2*time.Second))
	require.NoError(t, err)
	began := time.Now()
	send(t, p, "T", "m", 1)
	require.Less(t, time.Since(began), 4*time.Second, "one attempt's limit and a second")
	began = time.Now()
	send(t, p, "U", "m", 1)
	require.Less(t, time.Since(began), time.Second, "the healthy one is asked first from now on")
	require.NoError(t, p.Close(t.Context()))
	c.Thaw("namesrv-0")
}

// TestC12_BadFrameLength: garbage on any port of the cluster ends the
// connection it came on and nothing else.
func TestC12_BadFrameLength(t *testing.T) {
	c := testbroker.New(t, testbroker.Topic("T", 1))
	p := newProducer(t, c)
	send(t, p, "T", "m", 1)
	host, port := hostOf(t, c)
	for _, addr := range []string{c.NameServers()[0], net.JoinHostPort(host, port)} {
		for _, garbage := range []string{"\xff\xff\xff\xff....", "\x7f\xff\xff\xff....", "HTTP/1.1 400 Bad Request\r\n\r\n", "\x00\x00\x00\x08\x00\x00\x00\xc8{}{}"} {
			nc, err := net.Dial("tcp", addr)
			require.NoError(t, err)
			require.NoError(t, nc.SetDeadline(time.Now().Add(5*time.Second)))
			_, err = nc.Write([]byte(garbage))
			require.NoError(t, err)
			_, err = nc.Read(make([]byte, 1))
			require.Error(t, err)
			require.NotErrorIs(t, err, errTimeout, "%q is still open at %s", garbage, addr)
			require.NoError(t, nc.Close())
		}
	}
	send(t, p, "T", "m", 1)
	require.Len(t, c.Messages("T"), 2)
}
