package rocketmq

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/client"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

func allSentinels() []error {
	return []error{
		ErrInvalidOption, ErrInvalidMessage, ErrTooLarge, ErrClosed, ErrNameServer, ErrTopicNotFound, ErrNoQueue, ErrNoPermission,
		ErrUnauthorized, ErrBusy, ErrUnavailable, ErrConnection, ErrTimeout, ErrNotDurable, ErrOffset, ErrRevoked, ErrNotFound, ErrUnsupported,
	}
}

func TestBrokerErrorMeans(t *testing.T) {
	tests := []struct {
		code   Code
		remark string
		want   []error
		retry  bool
	}{
		{CodeSystemError, "", nil, true},
		{CodeSystemBusy, "", []error{ErrBusy}, true},
		{CodeFlowControl, "", []error{ErrBusy}, true},
		{CodeNotSupported, "", []error{ErrUnsupported}, false},
		{CodeFlushDiskTimeout, "", []error{ErrNotDurable}, false},
		{CodeSlaveNotAvailable, "", []error{ErrNotDurable}, false},
		{CodeFlushSlaveTimeout, "", []error{ErrNotDurable}, false},
		{CodeMessageIllegal, "", []error{ErrInvalidMessage}, false},
		{CodeServiceNotAvailable, "", []error{ErrUnavailable}, true},
		{CodeNotLeader, "", []error{ErrUnavailable}, true},
		{CodeGoAway, "", []error{ErrUnavailable}, true},
		{CodeNoPermission, "the broker sending message is forbidden", []error{ErrNoPermission}, false},
		{CodeNoPermission, "org.apache.rocketmq.acl.common.AclException: no accessKey", []error{ErrNoPermission, ErrUnauthorized}, false},
		{CodeSystemError, "AclException: Check signature failed", []error{ErrUnauthorized}, false},
		{CodeTopicNotExist, "", []error{ErrTopicNotFound}, false},
		{CodePullOffsetMoved, "", []error{ErrOffset}, false},
		{CodeQueryNotFound, "", []error{ErrNotFound}, false},
		{CodeGroupNotExist, "", []error{ErrNotFound}, false},
		{4711, "", nil, false},
	}
	for _, tt := range tests {
		err := fmt.Errorf("wrapped: %w", &BrokerError{Op: "OP", Addr: "b:1", Code: tt.code, Remark: tt.remark})
		var got []error
		for _, s := range allSentinels() {
			if errors.Is(err, s) {
				got = append(got, s)
			}
		}
		assert.ElementsMatch(t, tt.want, got, tt.code)
		assert.Equal(t, tt.retry, IsRetryable(err), tt.code)
	}
	assert.Equal(t, "OP at b:1: SYSTEM_BUSY (2): slow down", (&BrokerError{"OP", "b:1", CodeSystemBusy, "slow down"}).Error())
	assert.Equal(t, "OP: code 4711 (4711)", (&BrokerError{Op: "OP", Code: 4711}).Error())
}

func TestIsRetryable(t *testing.T) {
	busy := &BrokerError{Code: CodeSystemBusy}
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{io.EOF, false},
		{context.Canceled, false},
		{context.DeadlineExceeded, false}, // the caller's own deadline
		{ErrTimeout, true},
		{&remoting.ConnError{Addr: "a", Op: "dial", Err: io.EOF}, true},
		{ErrClosed, false},
		{&RouteError{Topic: "t"}, true},
		{&RouteError{Topic: "t", Asked: []NameServerAnswer{{Err: io.EOF}}}, true},
		{&RouteError{Topic: "t", Asked: []NameServerAnswer{{Code: CodeTopicNotExist}, {Err: ErrTimeout}}}, false},
		{&SendError{Cause: busy, Attempts: []Attempt{{Err: ErrTimeout}, {Err: busy}}}, true},
		{&SendError{Cause: context.Canceled, Attempts: []Attempt{{Err: busy}}}, false},
	} {
		assert.Equal(t, tt.want, IsRetryable(tt.err), "%v", tt.err)
	}
}

func TestRouteError(t *testing.T) {
	err := &RouteError{Topic: "t", Asked: []NameServerAnswer{
		{Addr: "a:1", Err: ErrTimeout}, {Addr: "b:1", Code: CodeTopicNotExist, Remark: "No topic route info"},
	}}
	assert.Equal(t, `rocketmq: no route of topic "t": name server a:1: deadline passed before the answer came; name server b:1: TOPIC_NOT_EXIST (17) No topic route info`, err.Error())
	assert.ErrorIs(t, err, ErrTopicNotFound)
	assert.ErrorIs(t, err, ErrTimeout)
	assert.NotErrorIs(t, err, ErrNameServer, "one did answer")
	err.Asked = err.Asked[:1]
	assert.NotErrorIs(t, err, ErrTopicNotFound)
	assert.ErrorIs(t, err, ErrNameServer)
	denied := &RouteError{Topic: "t", Asked: []NameServerAnswer{{Code: CodeNoPermission, Remark: "AclException"}}}
	assert.ErrorIs(t, denied, ErrUnauthorized)
	assert.ErrorContains(t, &RouteError{Topic: "t"}, "no name server is known")
}

func TestSendError(t *testing.T) {
	busy := &BrokerError{Op: "SEND", Addr: "b:1", Code: CodeSystemBusy}
	err := &SendError{Topic: "t", Cause: busy, Attempts: []Attempt{
		{Queue: Queue{"t", "a", 0}, Addr: "a:1", Took: time.Second, Err: ErrTimeout},
		{Queue: Queue{"t", "b", 3}, Addr: "b:1", Took: 1234 * time.Microsecond, Err: busy},
	}}
	assert.ErrorIs(t, err, ErrTimeout)
	assert.ErrorIs(t, err, ErrBusy)
	assert.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Equal(t, `rocketmq: send to topic "t": 2 attempts: a/0 at a:1 after 1s: deadline passed before the answer came; b/3 at b:1 after 1.2ms: SEND at b:1: SYSTEM_BUSY (2)`, err.Error())
	assert.Len(t, err.Unwrap(), 2, "the cause is not said twice")
	err.Cause = context.Canceled
	assert.ErrorContains(t, err, "context canceled; 2 attempts")
	assert.Equal(t, `rocketmq: send to topic "t": EOF`, (&SendError{Topic: "t", Cause: io.EOF}).Error())
}

func TestOtherErrors(t *testing.T) {
	off := &OffsetError{Queue{"t", "b", 1}, 9, 2, 5}
	assert.ErrorIs(t, off, ErrOffset)
	assert.Equal(t, "rocketmq: offset 9 of queue t/b/1 is outside of 2 to 5", off.Error())
	p := &PanicError{Value: io.EOF, Stack: []byte("stack")}
	assert.ErrorIs(t, p, io.EOF)
	assert.Equal(t, "rocketmq: panic: EOF", p.Error())
	assert.Nil(t, (&PanicError{Value: "text"}).Unwrap())
}

func TestPublicError(t *testing.T) {
	assert.NoError(t, publicError(nil))
	assert.Same(t, io.EOF, publicError(io.EOF))
	err := publicError(fmt.Errorf("x: %w", &client.RouteError{Topic: "t", Asked: []client.Answer{{Addr: "a", Code: 17, Remark: "no", Took: 5}, {Addr: "b", Err: io.EOF}}}))
	var re *RouteError
	require.ErrorAs(t, err, &re)
	require.Equal(t, []NameServerAnswer{{Addr: "a", Code: CodeTopicNotExist, Remark: "no", Took: 5}, {Addr: "b", Err: io.EOF}}, re.Asked)
	var be *BrokerError
	err = publicError(errors.Join(io.EOF, &client.ResponseError{Op: "OP", Addr: "a", Code: wire.RespSystemBusy, Remark: "r"}))
	require.ErrorAs(t, err, &be)
	require.Equal(t, &BrokerError{"OP", "a", CodeSystemBusy, "r"}, be)
	require.ErrorIs(t, err, io.EOF)
	joined := errors.Join(io.EOF, io.ErrClosedPipe)
	require.Same(t, joined, publicError(joined))
}
