package client

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

func TestErrorTexts(t *testing.T) {
	r := &ResponseError{"VIEW_MESSAGE_BY_ID", "b:1", wire.RespTopicNotExist, "no"}
	require.Equal(t, "VIEW_MESSAGE_BY_ID at b:1: TOPIC_NOT_EXIST (17): no", r.Error())
	require.ErrorIs(t, r, ErrTopicNotFound)
	require.NotErrorIs(t, &ResponseError{Code: wire.RespSystemError}, ErrTopicNotFound)

	a := []Answer{{Addr: "a:1", Err: io.EOF}, {Addr: "b:1", Code: 17, Remark: "unknown"}}
	require.Equal(t, `no route of topic "t"; name server a:1: EOF; name server b:1: TOPIC_NOT_EXIST (17): unknown`, (&RouteError{"t", a}).Error())
	require.Equal(t, "rocketmq: no name server answered; a:1: EOF", (&PingError{a[:1]}).Error())
	require.Equal(t, "request 4711", opName(4711))
}
