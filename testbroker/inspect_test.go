package testbroker_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/testbroker"
)

func TestMessagesAsSent(t *testing.T) {
	c := testbroker.New(t, testbroker.Topic("T", 1))
	p := newProducer(t, c)
	res, err := p.Send(t.Context(), &rocketmq.Message{
		Topic: "T", Body: []byte("body"), Tag: "tag", Keys: []string{"k1", "k2"}, Properties: map[string]string{"user": "value"},
	})
	require.NoError(t, err)
	all := c.Messages("T")
	require.Len(t, all, 1)
	m := all[0]
	require.Equal(t, res.MessageID, m.ID)
	require.Equal(t, res.OffsetID, m.OffsetID)
	require.Equal(t, "body", string(m.Body))
	require.Equal(t, "tag", m.Tag)
	require.Equal(t, []string{"k1", "k2"}, m.Keys)
	require.Equal(t, map[string]string{"user": "value"}, m.Properties.User())
	require.Equal(t, rocketmq.Queue{Topic: "T", Broker: "broker-a"}, m.Queue)
	require.Equal(t, 1, m.Attempt)
	require.Empty(t, c.Messages("Absent"))
}

func TestMessagesBeyondOneRead(t *testing.T) {
	c := testbroker.New(t, testbroker.Topic("T", 1))
	send(t, newProducer(t, c), "T", "m", 100)
	for i, m := range c.Messages("T") {
		require.EqualValues(t, i, m.Offset)
	}
	require.Len(t, c.Messages("T"), 100)
}

func TestOffsetAndLag(t *testing.T) {
	c := testbroker.New(t, testbroker.Topic("T", 1))
	q := rocketmq.Queue{Topic: "T", Broker: "broker-a"}
	send(t, newProducer(t, c), "T", "m", 10)
	_, ok := c.Offset("G", q)
	require.False(t, ok)
	require.EqualValues(t, 10, c.Lag("G", "T"))
	got := newBodies()
	stop := consume(t, c.Client(t), "G", "T", got)
	got.await(t, 10)
	stop()
	off, ok := c.Offset("G", q)
	require.True(t, ok)
	require.EqualValues(t, 10, off)
	require.Zero(t, c.Lag("G", "T"))
	send(t, newProducer(t, c), "T", "n", 3)
	require.EqualValues(t, 3, c.Lag("G", "T"))
	_, ok = c.Offset("G", rocketmq.Queue{Topic: "T", Broker: "nobody"})
	require.False(t, ok)
}
