package remoting

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

func TestC10_ConnectionDiesUnderRequest(t *testing.T) {
	var arrived atomic.Int32
	all := make(chan *Conn, 1)
	_, addr := serveTCP(t, ServerConfig{Config: Config{Handler: func(r *Request) {
		if n := arrived.Add(1); n > 100 {
			echo(r)
			return
		} else if n == 100 {
			all <- r.Conn()
		}
		r.Drop()
	}}})
	p := newPool(t, PoolConfig{Config: Config{CallTimeout: time.Hour, Silence: -1}}) // only the death ends them
	c := get(t, p, addr)
	errs := make(chan error, 100)
	for range 100 {
		go func() {
			_, err := c.Call(context.Background(), &wire.Command{Code: codeEcho})
			errs <- err
		}()
	}
	victim := within(t, all, "100 requests")
	require.Equal(t, 100, c.Pending())
	_ = victim.raw.(*net.TCPConn).SetLinger(0) // close by reset
	victim.Close(nil)
	for range 100 {
		err := within(t, errs, "a call to fail")
		assert.ErrorIs(t, err, ErrConnection)
		assert.NotErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorContains(t, err, addr)
	}
	assert.Zero(t, c.Pending())
	_, err := p.Call(t.Context(), addr, &wire.Command{Code: codeEcho})
	assert.NoError(t, err, "the next call reconnects")
}

// once is an Exchange that counts its Done calls.
type once struct {
	sendExchange
	calls atomic.Int32
}

func (x *once) Done(*wire.Frame, error) { x.calls.Add(1) }

// Answers, deadlines, cancellations and the end of the connection race; each
// call ends exactly once all the same.
func TestDoneHappensOnce(t *testing.T) {
	_, addr := serveTCP(t, ServerConfig{Config: Config{Handler: func(r *Request) {
		if rand.IntN(3) == 0 {
			r.Drop()
		} else {
			r.ReplyAppend(sendResponse{})
		}
	}}})
	for range 5 {
		p := newPool(t, PoolConfig{})
		c := get(t, p, addr)
		var wg sync.WaitGroup
		var mu sync.Mutex
		want := map[*once]int32{}
		for i := range 16 {
			wg.Go(func() {
				for range 200 {
					x := &once{}
					n := int32(1)
					deadline := time.Now().Add(time.Duration(rand.IntN(60)) * time.Millisecond)
					tok, err := c.Start(x, deadline, Mode(rand.IntN(3)))
					switch {
					case err == nil && rand.IntN(4) == 0:
						if c.Cancel(tok) {
							n = 0
						}
					case errors.Is(err, ErrConnection), errors.Is(err, ErrBusy), errors.Is(err, ErrTimeout):
						n = 0 // gone, or this machine is slow to write what is buffered
					case err != nil:
						t.Errorf("unexpected: %v", err)
					}
					mu.Lock()
					want[x] = n
					mu.Unlock()
				}
				if i == 0 {
					c.Close(nil)
				}
			})
		}
		wg.Wait()
		p.Close() // waits for whoever might still call Done
		require.Zero(t, c.Pending())
		for x, n := range want {
			require.Equal(t, n, x.calls.Load())
		}
	}
}

func TestCloseReportsItsCause(t *testing.T) {
	closed := make(chan error, 1)
	_, addr := serveTCP(t, ServerConfig{Config: Config{Handler: (*Request).Drop}})
	p := newPool(t, PoolConfig{Config: Config{OnClose: func(_ *Conn, err error) { closed <- err }}})
	c := get(t, p, addr)
	assert.NoError(t, c.Err())
	why := errors.New("not wanted")
	x := &call{command: command{&wire.Command{Code: codeEcho}, c.cfg, 0}, done: make(chan struct{})}
	_, err := c.Start(x, time.Time{}, Later)
	require.NoError(t, err)
	c.Close(why)
	c.Close(errors.New("too late"))
	within(t, x.done, "the pending call to fail")
	for _, err := range []error{x.err, c.Err(), within(t, closed, "OnClose")} {
		assert.ErrorIs(t, err, why)
		assert.ErrorIs(t, err, ErrConnection)
	}
	_, err = c.Start(x, time.Time{}, Inline)
	assert.ErrorIs(t, err, why)
	assert.ErrorIs(t, c.CallOneway(&wire.Command{Code: codeEcho}), why)
	assert.ErrorIs(t, c.Flush(t.Context()), why)
	assert.Nil(t, p.Lookup(addr))
}

func TestDoneMayCloseTheConnection(t *testing.T) {
	_, addr := serveTCP(t, ServerConfig{Config: Config{Handler: echo}})
	c := get(t, newPool(t, PoolConfig{}), addr)
	x := &closer{c: c}
	_, err := c.Start(x, time.Time{}, Inline)
	require.NoError(t, err)
	within(t, c.Done(), "the connection to close")
	assert.ErrorIs(t, c.Err(), ErrClosed)
}

type closer struct {
	sendExchange
	c *Conn
}

func (x *closer) Done(*wire.Frame, error) { x.c.Close(nil) }

func TestIdleConnectionsAreClosed(t *testing.T) {
	var opened, closed atomic.Int32
	gone := make(chan error, 1)
	_, addr := serveTCP(t, ServerConfig{Config: Config{
		Handler:     echo,
		IdleTimeout: 100 * time.Millisecond,
		OnOpen:      func(*Conn) { opened.Add(1) },
		OnClose:     func(_ *Conn, err error) { closed.Add(1); gone <- err },
	}})
	p := newPool(t, PoolConfig{Config: Config{IdleTimeout: -1}})
	_, err := p.Call(t.Context(), addr, &wire.Command{Code: codeEcho})
	require.NoError(t, err)
	assert.ErrorIs(t, within(t, gone, "the idle connection to close"), ErrIdle)
	_, err = p.Call(t.Context(), addr, &wire.Command{Code: codeEcho})
	if err != nil { // the end of the old connection had not arrived yet
		_, err = p.Call(t.Context(), addr, &wire.Command{Code: codeEcho})
	}
	require.NoError(t, err, "the next call reconnects")
	assert.EqualValues(t, 2, opened.Load())
}

func TestValue(t *testing.T) {
	c := &Conn{}
	assert.Nil(t, c.Value())
	c.SetValue("client-1")
	assert.Equal(t, "client-1", c.Value())
	c.SetValue(nil)
	assert.Nil(t, c.Value())
}
