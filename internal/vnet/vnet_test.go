package vnet

import (
	"context"
	"io"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

func TestDialReachesListener(t *testing.T) {
	var n Network
	l, err := n.Listen("a:1")
	require.NoError(t, err)
	_, err = n.Listen("a:1")
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	got := make(chan string, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			got <- err.Error()
			return
		}
		b, _ := io.ReadAll(c)
		got <- string(b) + " from " + c.RemoteAddr().String() + " at " + c.LocalAddr().String()
		_ = c.Close()
	}()
	c, err := n.Dial(context.Background(), "tcp", "a:1")
	require.NoError(t, err)
	_, err = c.Write([]byte("hello"))
	require.NoError(t, err)
	require.NoError(t, c.Close())
	require.Equal(t, "hello from "+c.LocalAddr().String()+" at a:1", <-got)
	require.Equal(t, "a:1", c.RemoteAddr().String())

	require.NoError(t, l.Close())
	_, err = l.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = n.Dial(context.Background(), "tcp", "a:1")
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	l, err = n.Listen("a:1") // the address is free again
	require.NoError(t, err)
	require.NoError(t, l.Close())
}

func TestDialGivesUpWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n Network
		l, err := n.Listen("a:1")
		require.NoError(t, err)
		defer l.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		_, err = n.Dial(ctx, "tcp", "a:1") // nobody accepts
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Minute, time.Since(start))
	})
}
