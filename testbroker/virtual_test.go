package testbroker_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/producer"
	"github.com/gorocketmq/rocketmq/testbroker"
)

// Everything in a bubble: no socket, and time that costs nothing.
func TestVirtualSendAndConsume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := testbroker.New(t, testbroker.Virtual(), testbroker.Topic("T", 2), testbroker.Brokers(2), testbroker.NameServers(2))
		got := newBodies()
		stop := consume(t, c.Client(t), "G", "T", got)
		send(t, newProducer(t, c), "T", "m", 50)
		got.await(t, 50)
		stop()
		require.Zero(t, c.Lag("G", "T"))
		c.Kill("broker-a", 0)
		c.Restart("broker-a", 0)
		require.Len(t, c.Messages("T"), 50)
	})
}

// A consumer that waits long for its message has it in the very instant
// in which it is sent.
func TestVirtualLongPoll(t *testing.T) {
	began := time.Now()
	synctest.Test(t, func(t *testing.T) {
		c := testbroker.New(t, testbroker.Virtual(), testbroker.Topic("T", 1))
		pulls := c.On(testbroker.PullMessage).Topic("T").Observe(func(*testbroker.Call) {})
		got := newBodies()
		stop := consume(t, c.Client(t), "G", "T", got)
		p := newProducer(t, c)
		time.Sleep(time.Minute)
		polled := pulls.Hits()
		require.InDelta(t, 4, polled, 1, "a poll is held for 15 s")
		before := time.Now()
		send(t, p, "T", "m", 1)
		got.await(t, 1)
		require.Less(t, time.Since(before), 10*time.Millisecond)
		stop()
	})
	require.Less(t, time.Since(began), 20*time.Second)
}

// The ladder in which time passes for clients, too.
func TestVirtualRetryLadder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := testbroker.New(t, testbroker.Virtual(), testbroker.Topic("orders", 1))
		p := newProducer(t, c)
		tried := failing(t, c.Client(t), "billing", "orders")
		send(t, p, "orders", "poison", 1)
		var at []time.Duration
		<-tried
		last := time.Now()
		for range 3 {
			<-tried
			at = append(at, time.Since(last).Truncate(time.Second))
			last = time.Now()
		}
		require.Equal(t, []time.Duration{10 * time.Second, 30 * time.Second, time.Minute}, at)
	})
}

func TestVirtualTimeouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := testbroker.New(t, testbroker.Virtual(), testbroker.Topic("T", 1))
		p := newProducer(t, c, producer.WithTimeout(5*time.Minute, time.Minute), producer.WithRetries(2))
		c.On(testbroker.SendMessage).Times(1).Delay(30 * time.Second)
		began := time.Now()
		send(t, p, "T", "m", 1)
		require.Equal(t, 30*time.Second, time.Since(began).Truncate(time.Second))
		c.Freeze("broker-a")
		began = time.Now()
		_, err := one(t, p, "T")
		require.ErrorContains(t, err, "peer has gone silent")
		require.Less(t, time.Since(began), time.Minute, "three attempts, 3 s of silence each")
	})
}
