package rocketmq

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func request() map[string]string {
	return map[string]string{"CLUSTER": "c", "CORRELATION_ID": "id", "REPLY_TO_CLIENT": "1.2.3.4@x", "TTL": "1500", "user": "v"}
}

func TestNewReply(t *testing.T) {
	body := []byte("reply")
	m, err := NewReply(&MessageView{Properties: NewProperties(request())}, body)
	require.NoError(t, err)
	require.Equal(t, &Message{
		Topic: "c_REPLY_TOPIC", Body: body,
		ReplyTo: &ReplyTo{Client: "1.2.3.4@x", CorrelationID: "id", TTL: 1500 * time.Millisecond},
	}, m)
	require.NoError(t, m.Validate())

	m, err = NewReply(&MessageView{Properties: NewProperties(request())}, nil)
	require.NoError(t, err)
	require.NoError(t, m.Validate(), "a reply may be empty")
}

// A time to live that cannot be read is none: only the requester goes by it.
func TestNewReplyTTL(t *testing.T) {
	for ttl, want := range map[string]time.Duration{"": 0, "soon": 0, "-5": 0, "1": time.Millisecond, "9223372036854775807": time.Duration(maxTTL) * time.Millisecond} {
		p := request()
		p["TTL"] = ttl
		m, err := NewReply(&MessageView{Properties: NewProperties(p)}, nil)
		require.NoError(t, err)
		require.Equal(t, want, m.ReplyTo.TTL, ttl)
	}
}

func TestNewReplyToWhatIsNoRequest(t *testing.T) {
	_, err := NewReply(nil, nil)
	require.ErrorIs(t, err, ErrInvalidMessage)
	for _, name := range []string{"CLUSTER", "CORRELATION_ID", "REPLY_TO_CLIENT"} {
		p := request()
		delete(p, name)
		_, err := NewReply(&MessageView{ID: "AC11", Topic: "orders", Properties: NewProperties(p)}, nil)
		require.ErrorIs(t, err, ErrInvalidMessage)
		require.ErrorContains(t, err, "no property "+name)
		require.ErrorContains(t, err, "AC11")
		require.ErrorContains(t, err, "orders")
	}
	_, err = NewReply(&MessageView{}, nil)
	require.ErrorContains(t, err, "CORRELATION_ID, REPLY_TO_CLIENT, CLUSTER")
}

func TestReplyToIsChecked(t *testing.T) {
	for name, to := range map[string]ReplyTo{
		"no client":         {CorrelationID: "id"},
		"no id":             {Client: "c"},
		"separator":         {Client: "c\x02TRAN_MSG\x01true", CorrelationID: "id"},
		"separator in id":   {Client: "c", CorrelationID: "\x01"},
		"negative time":     {Client: "c", CorrelationID: "id", TTL: -1},
		"not UTF-8":         {Client: "c\xff", CorrelationID: "id"},
		"longer than it is": {Client: strings.Repeat("c", 40000), CorrelationID: "id"},
	} {
		m := Message{Topic: "c_REPLY_TOPIC", ReplyTo: &to}
		require.ErrorIs(t, m.Validate(), ErrInvalidMessage, name)
	}
}
