package remoting

import (
	"io"
	"net"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

var badFrames = map[string]struct {
	bytes string
	cause error
}{
	"negative length":          {"\xFF\xFF\xFF\xFF\x00\x00\x00\x00", wire.ErrFrame},
	"largest length":           {"\x7F\xFF\xFF\xFF\x00\x00\x00\x00", wire.ErrFrame},
	"http":                     {"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", wire.ErrFrame},
	"header beyond frame":      {"\x00\x00\x00\x10\x00\x00\x01\x00abcdefghijkl", wire.ErrFrame},
	"unknown encoding":         {"\x00\x00\x00\x08\x07\x00\x00\x04abcd", wire.ErrFrame},
	"undecodable header":       {"\x00\x00\x00\x08\x00\x00\x00\x04{{{{", wire.ErrFrame},
	"four bytes then silence":  {"\xFF\xFF\xFF\xFF", ErrIdle},
	"three bytes then silence": {"\x00\x00\x01", ErrIdle},
	"lying length":             {"\x00\xFF\xFF\xF0\x00\x00\x01\x00{", ErrIdle},
}

func totalAlloc() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

func TestC12_BadFrameOnServer(t *testing.T) {
	for name, bad := range badFrames {
		t.Run(name, func(t *testing.T) {
			closed := make(chan error, 1)
			var idle time.Duration // the default, so that a starved machine does not look idle
			if bad.cause == ErrIdle {
				idle = 50 * time.Millisecond
			}
			_, addr := serveTCP(t, ServerConfig{Config: Config{
				Handler:     echo,
				IdleTimeout: idle,
				OnClose:     func(_ *Conn, err error) { closed <- err },
			}})
			nc, err := net.Dial("tcp", addr)
			require.NoError(t, err)
			defer nc.Close()
			before := totalAlloc()
			_, err = nc.Write([]byte(bad.bytes))
			require.NoError(t, err)
			err = within(t, closed, "the server to close the connection")
			assert.Less(t, totalAlloc()-before, uint64(1<<20))
			assert.ErrorIs(t, err, bad.cause)
			assert.ErrorIs(t, err, ErrConnection)
			assert.ErrorContains(t, err, nc.LocalAddr().String(), "the error names the peer")
			_ = nc.SetReadDeadline(time.Now().Add(10 * time.Second))
			_, err = nc.Read(make([]byte, 1))
			assert.Error(t, err)
			assert.NotErrorIs(t, err, os.ErrDeadlineExceeded, "the peer sees that it was closed")
		})
	}
}

func TestC12_BadFrameOnClient(t *testing.T) {
	for name, bad := range badFrames {
		if bad.cause == ErrIdle {
			continue // a call is pending, so its timeout comes first
		}
		t.Run(name, func(t *testing.T) {
			addr := rawServer(t, func(nc net.Conn) {
				_, _ = nc.Read(make([]byte, 1024))
				_, _ = nc.Write([]byte(bad.bytes))
				_, _ = io.Copy(io.Discard, nc)
			})
			p := newPool(t, PoolConfig{})
			_, err := p.Call(t.Context(), addr, &wire.Command{Code: codeEcho})
			assert.ErrorIs(t, err, bad.cause)
			assert.ErrorIs(t, err, ErrConnection)
			assert.ErrorContains(t, err, addr)
		})
	}
}

// rawServer runs f for each connection to the returned address.
func rawServer(t testing.TB, f func(nc net.Conn)) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		var n []chan struct{}
		for {
			nc, err := ln.Accept()
			if err != nil {
				for _, ch := range n {
					<-ch
				}
				return
			}
			ch := make(chan struct{})
			n = append(n, ch)
			go func() {
				defer close(ch)
				defer nc.Close()
				f(nc)
			}()
		}
	}()
	t.Cleanup(func() {
		_ = ln.Close()
		within(t, done, "the raw server's handlers to return")
	})
	return ln.Addr().String()
}
