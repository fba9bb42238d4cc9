package testbroker_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/producer"
	"github.com/gorocketmq/rocketmq/testbroker"
)

// A power failure takes no message that was answered, if the broker flushes
// before it answers, and leaves the beginning of what was sent otherwise.
func TestCrash(t *testing.T) {
	lost := 0
	for _, sync := range []bool{true, false} {
		for seed := range uint64(12) {
			t.Run(fmt.Sprintf("sync=%t/%d", sync, seed), func(t *testing.T) {
				opts := []testbroker.Option{testbroker.Topic("T", 2), testbroker.CrashDisk(), testbroker.SegmentSize(64 << 10)}
				if sync {
					opts = append(opts, testbroker.SyncFlush())
				}
				c := testbroker.New(t, opts...)
				p := newProducer(t, c, producer.WithCompression(producer.NoCompression, 0, 0))
				const n = 40
				for i := range n {
					_, err := p.Send(t.Context(), &rocketmq.Message{Topic: "T", Body: append(make([]byte, 3000), fmt.Sprint(i)...)})
					require.NoError(t, err)
				}
				before := c.Messages("T")
				require.Len(t, before, n)
				c.Crash("broker-a", 0, seed)
				require.Empty(t, c.Messages("T"))
				c.Restart("broker-a", 0)
				after := c.Messages("T")
				if sync {
					require.Equal(t, before, after)
				}
				lost += n - len(after)
				known := map[string][]byte{}
				for _, m := range before {
					known[m.ID] = m.Body
				}
				for _, m := range after {
					require.Equal(t, known[m.ID], m.Body, "whole or gone")
				}
				c.CreateTopic("T", 2) // a topic that was never flushed is gone as well
				send(t, newProducer(t, c), "T", "later", 3)
				require.Len(t, c.Messages("T"), len(after)+3)
			})
		}
	}
	require.Positive(t, lost, "a crash that loses nothing is none")
}

func TestCrashNeedsItsDisk(t *testing.T) {
	f := &fakeTB{T: t}
	c := testbroker.New(f)
	c.Crash("broker-a", 0, 1)
	require.NotEmpty(t, c.Brokers())
	f.end()
	require.Len(t, f.fatal, 1)
	require.Contains(t, f.fatal[0], "CrashDisk")
	_, err := testbroker.Start(t.Context(), testbroker.CrashDisk(), testbroker.Dir(t.TempDir()))
	require.ErrorIs(t, err, testbroker.ErrInvalidOption)
}

// A frozen broker takes connections and requests, and answers when it thaws.
func TestFreezeBroker(t *testing.T) {
	c := testbroker.New(t, testbroker.Topic("T", 1))
	p := newProducer(t, c, producer.WithTimeout(30*time.Second, 20*time.Second))
	send(t, p, "T", "m", 1)
	c.Freeze("broker-a")
	done := make(chan error, 1)
	go func() {
		_, err := p.Send(context.Background(), &rocketmq.Message{Topic: "T", Body: []byte("x")})
		done <- err
	}()
	fast, err := producer.New(c.Client(t), producer.WithTimeout(200*time.Millisecond, 200*time.Millisecond))
	require.NoError(t, err)
	_, err = one(t, fast, "T") // over a connection that is made now
	require.ErrorIs(t, err, rocketmq.ErrTimeout)
	require.Len(t, c.Messages("T"), 1)
	require.Empty(t, done)
	c.Thaw("broker-a")
	require.NoError(t, <-done)
	send(t, p, "T", "later", 1)

	c.Freeze("broker-a")
	c.Restart("broker-a", 0)
	send(t, p, "T", "at once", 1)
}

func TestFreezeNameServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := testbroker.New(t, testbroker.Virtual(), testbroker.Topic("T", 1), testbroker.NameServers(2))
		c.Freeze("namesrv-0")
		p := newProducer(t, c)
		send(t, p, "T", "m", 1) // C03: the other one is asked
		c.KillNameServer(1)
		c.RestartNameServer(0)
		send(t, newProducer(t, c), "T", "m", 1)
	})
}

// TestC14_FrozenBroker: the first broker hangs, the message goes by way of the
// other one within its deadline, and later ones do so at once.
func TestC14_FrozenBroker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := testbroker.New(t, testbroker.Virtual(), testbroker.Topic("T", 1), testbroker.Brokers(2))
		p := newProducer(t, c, producer.WithTimeout(3*time.Second, 1500*time.Millisecond), producer.WithRetries(2))
		send(t, p, "T", "before", 2)
		c.Freeze("broker-a")
		for i := range 6 {
			began := time.Now()
			res, err := one(t, p, "T")
			require.NoError(t, err)
			require.Equal(t, "broker-b", res.Queue.Broker)
			require.Less(t, time.Since(began), 2*time.Second)
			if i >= 2 {
				require.Less(t, time.Since(began), 100*time.Millisecond, "it is avoided")
			}
		}
	})
}

func TestFreezeIsChecked(t *testing.T) {
	f := &fakeTB{T: t}
	c := testbroker.New(f)
	c.Freeze("broker-z")
	c.Thaw("broker-a")
	c.Freeze("broker-a")
	c.Freeze("broker-a") // and the cluster is closed like that
	f.end()
	require.Len(t, f.fatal, 3)
	require.Contains(t, f.fatal[0], `no server "broker-z"`)
	require.Contains(t, f.fatal[1], "not frozen")
	require.Contains(t, f.fatal[2], "frozen already")
	require.Empty(t, f.errors)
}

// TestC62_DiskQuota: a small disk fills up, and what is on it can be read.
func TestC62_DiskQuota(t *testing.T) {
	for _, place := range []string{"memory", "disk", "crash"} {
		t.Run(place, func(t *testing.T) {
			opts := []testbroker.Option{testbroker.Topic("T", 1), testbroker.SegmentSize(64 << 10), testbroker.DiskQuota(2 << 20)}
			switch place {
			case "disk":
				opts = append(opts, testbroker.Dir(t.TempDir()))
			case "crash":
				opts = append(opts, testbroker.CrashDisk())
			}
			c := testbroker.New(t, opts...)
			p := newProducer(t, c, producer.WithRetries(0), producer.WithCompression(producer.NoCompression, 0, 0))
			stored := 0
			var err error
			for ; err == nil; stored++ {
				require.Less(t, stored, 100_000, "the disk never fills up")
				_, err = p.Send(t.Context(), &rocketmq.Message{Topic: "T", Body: make([]byte, 8<<10)})
			}
			stored--
			require.ErrorIs(t, err, rocketmq.ErrUnavailable)
			var be *rocketmq.BrokerError
			require.ErrorAs(t, err, &be)
			require.Equal(t, rocketmq.CodeServiceNotAvailable, be.Code)
			require.Greater(t, stored, 150, "28 files of 7 messages fit")
			require.Len(t, c.Messages("T"), stored)
		})
	}
	_, err := testbroker.Start(t.Context(), testbroker.DiskQuota(1<<20))
	require.ErrorIs(t, err, testbroker.ErrInvalidOption)
}
