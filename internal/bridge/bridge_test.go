package bridge_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/bridge"
	"github.com/gorocketmq/rocketmq/internal/client"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

func TestOf(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	cl, err := rocketmq.NewClient(rocketmq.WithNameServers("127.0.0.1:1"), rocketmq.WithLogger(log))
	require.NoError(t, err)
	h := bridge.Of(cl)
	require.Equal(t, cl.ID(), h.Runtime.ClientID())
	require.Same(t, log, h.Logger)
	require.Same(t, h, bridge.Of(cl), "one inside a client")

	var closed []string
	adopt := func(name string) (release func()) {
		release, err := h.Adopt(func(context.Context) error {
			closed = append(closed, name)
			return nil
		})
		require.NoError(t, err)
		return release
	}
	adopt("first")
	release := adopt("released")
	adopt("last")
	release()
	require.NoError(t, cl.Close(t.Context()))
	require.Equal(t, []string{"last", "first"}, closed)
	_, err = h.Adopt(func(context.Context) error { return nil })
	require.ErrorIs(t, err, rocketmq.ErrClosed)
}

func TestOfSomethingElse(t *testing.T) {
	require.Nil(t, bridge.Of(nil))
	require.Nil(t, bridge.Of((*rocketmq.Client)(nil)))
	require.Nil(t, bridge.Of("a client"))
}

// Errors of the inside become those that users can name; others stay.
func TestPublicError(t *testing.T) {
	var be *rocketmq.BrokerError
	require.ErrorAs(t, bridge.PublicError(&client.ResponseError{Op: "HEART_BEAT", Addr: "b:1", Code: wire.RespSystemError, Remark: "no"}), &be)
	require.Equal(t, "b:1", be.Addr)
	require.Equal(t, "no", be.Remark)
	other := errors.New("other")
	require.Same(t, other, bridge.PublicError(other))
	require.NoError(t, bridge.PublicError(nil))
}
