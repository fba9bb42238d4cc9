package rocketmq

import (
	"log/slog"
	"maps"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMessageClone(t *testing.T) {
	m := &Message{Topic: "t", Body: []byte("b"), Keys: []string{"k"}, Properties: map[string]string{"a": "1"}, Delay: DelayLevel(1)}
	c := m.Clone()
	require.Equal(t, m, c)
	c.Body[0], c.Keys[0], c.Properties["a"] = 'x', "x", "x"
	require.Equal(t, &Message{Topic: "t", Body: []byte("b"), Keys: []string{"k"}, Properties: map[string]string{"a": "1"}, Delay: DelayLevel(1)}, m)
}

func TestValidateCostsNothing(t *testing.T) {
	m := &Message{Topic: "t", Body: []byte("b"), Tag: "tag", Keys: []string{"k"}, Properties: map[string]string{"a": "1"}, Delay: DelayLevel(1)}
	require.NoError(t, m.Validate())
	require.Zero(t, testing.AllocsPerRun(100, func() { _ = m.Validate() }))
}

func TestValidateSaysWhy(t *testing.T) {
	for want, m := range map[string]*Message{
		"body is empty":    {Topic: "t"},
		"4194305 bytes":    {Topic: "t", Body: make([]byte, MaxBody+1)},
		"separator":        {Topic: "t", Body: []byte("b"), Properties: map[string]string{"name": "\x01"}},
		`"name"`:           {Topic: "t", Body: []byte("b"), Properties: map[string]string{"name": ""}},
		"reserved":         {Topic: "t", Body: []byte("b"), Properties: map[string]string{"KEYS": "x"}},
		"ShardingKey":      {Topic: "t", Body: []byte("b"), Properties: map[string]string{"__SHARDINGKEY": "x"}},
		"UTF-8":            {Topic: "t", Body: []byte("b"), Tag: "\xff"},
		"levels start":     {Topic: "t", Body: []byte("b"), Delay: DelayLevel(-3)},
		"before 1970":      {Topic: "t", Body: []byte("b"), Delay: DeliverAt(time.Unix(-10, 0))},
		"system's own":     {Topic: "RMQ_SYS_TRANS_HALF_TOPIC", Body: []byte("b")},
		`topic "bad name"`: {Topic: "bad name", Body: []byte("b")},
		"at most 127":      {Topic: strings.Repeat("x", 128), Body: []byte("b")},
	} {
		err := m.Validate()
		assert.ErrorIs(t, err, ErrInvalidMessage)
		assert.ErrorContains(t, err, want)
		assert.Less(t, len(err.Error()), 400)
	}
}

func TestDelay(t *testing.T) {
	at := time.UnixMilli(1700000000123)
	assert.True(t, Delay{}.IsZero())
	assert.True(t, DelayLevel(0).IsZero())
	assert.True(t, DelayFor(0).IsZero())
	assert.Equal(t, 4, DelayLevel(4).Level())
	assert.Equal(t, 2*time.Millisecond, DelayFor(time.Millisecond+1).Duration(), "rounded up")
	assert.True(t, at.Equal(DeliverAt(at).Time()))
	for _, d := range []Delay{{}, DelayLevel(1), DelayFor(time.Second), DeliverAt(at)} {
		assert.NoError(t, d.validate())
	}
	// Each accessor answers for its own kind only.
	assert.Zero(t, DelayFor(time.Second).Level())
	assert.Zero(t, DelayLevel(3).Duration())
	assert.True(t, DelayLevel(3).Time().IsZero())
	assert.Equal(t, []string{"none", "level 2", "for 1s", "until 2023-11-14T22:13:20.123Z"},
		[]string{Delay{}.String(), DelayLevel(2).String(), DelayFor(time.Second).String(), DeliverAt(at).String()})
}

func TestPosition(t *testing.T) {
	at := time.UnixMilli(1700000000123)
	assert.Equal(t, PositionUnset, Position{}.Kind())
	assert.Equal(t, int64(9), AtOffset(9).Offset())
	assert.True(t, at.Equal(AtTime(at).Time()))
	assert.Zero(t, AtTime(at).Offset())
	assert.True(t, AtOffset(9).Time().IsZero())
	assert.NotEqual(t, Latest(), StrictLatest())
	var got []string
	for _, p := range []Position{{}, Earliest(), Latest(), StrictLatest(), AtTime(at), AtOffset(7)} {
		got = append(got, p.String())
	}
	assert.Equal(t, []string{"unset", "earliest", "latest", "strict latest", "time 2023-11-14T22:13:20.123Z", "offset 7"}, got)
}

func TestQueue(t *testing.T) {
	a := Queue{"t", "b1", 2}
	assert.Equal(t, "t/b1/2", a.String())
	assert.Equal(t, "t/b1/2", a.LogValue().String())
	assert.Zero(t, a.Compare(a))
	assert.Negative(t, a.Compare(Queue{"t", "b1", 10}), "ids are numbers")
	assert.Negative(t, a.Compare(Queue{"t", "b2", 0}))
	assert.Positive(t, a.Compare(Queue{"s", "z", 9}))
}

func TestC20_PropertiesAreDecodedTolerantly(t *testing.T) {
	p := Properties("k\x01a\x01b\x02x\x01y")
	assert.Equal(t, "a\x01b", p.Get("k"), "split at the first 0x01")
	assert.Equal(t, "y", p.Get("x"))
	p = Properties("\x01v\x02n\x01\x02dup\x011\x02dup\x012\x02junk\x02\x02UNIQ_KEY\x01id\x02__transactionId__\x01tx\x02")
	assert.Equal(t, map[string]string{"dup": "2", "UNIQ_KEY": "id", "__transactionId__": "tx"}, maps.Collect(p.All()))
	_, ok := p.Lookup("n")
	assert.False(t, ok, "empty values vanish")
	assert.Equal(t, map[string]string{"dup": "2"}, p.User())
	assert.Equal(t, map[string]string{"UNIQ_KEY": "id", "__transactionId__": "tx"}, p.System())
	assert.Nil(t, Properties("").User())
	assert.Zero(t, testing.AllocsPerRun(100, func() { _, _ = p.Lookup("dup") }))
	for range p.All() {
		break
	}

	m := map[string]string{"a": "1", "b": "2", "": "x", "empty": ""}
	assert.Equal(t, Properties("a\x011\x02b\x012\x02"), NewProperties(m))
}

func TestMessageView(t *testing.T) {
	v := &MessageView{
		ID: "id", Topic: "t", Tag: "tag", Keys: []string{"k"}, ShardingKey: "s", Body: []byte("secret"),
		Properties: NewProperties(map[string]string{"mine": "1", "MSG_REGION": "r", "TAGS": "tag"}),
		Queue:      Queue{"t", "b", 1}, Offset: 5, Attempt: 2, BornHost: netip.MustParseAddrPort("10.0.0.1:1"),
	}
	m := v.Message()
	require.Equal(t, &Message{Topic: "t", Body: []byte("secret"), Tag: "tag", Keys: []string{"k"}, ShardingKey: "s", Properties: map[string]string{"mine": "1"}}, m)
	require.NoError(t, m.Validate(), "what was received can be sent on")
	m.Body[0] = 'x'
	require.Equal(t, "secret", string(v.Body))

	var b strings.Builder
	slog.New(slog.NewTextHandler(&b, nil)).Info("got", "msg", v)
	require.Contains(t, b.String(), "msg.queue=t/b/1")
	require.NotContains(t, b.String(), "secret")
}
