package remoting

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

func TestCallersShareOneDial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newPipeNet()
		s := NewServer(ServerConfig{Config: Config{Handler: echo}})
		require.NoError(t, s.Serve(n))
		var dials atomic.Int32
		p := NewPool(PoolConfig{Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
			dials.Add(1)
			time.Sleep(time.Second)
			return n.Dial(ctx, network, addr)
		}})
		var wg sync.WaitGroup
		conns := make([]*Conn, 50)
		for i := range conns {
			wg.Go(func() {
				c, err := p.Get(t.Context(), "broker:1")
				assert.NoError(t, err)
				conns[i] = c
			})
		}
		// One caller is in a hurry; the dial goes on for the others.
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err := p.Get(ctx, "broker:1")
		assert.ErrorIs(t, err, ErrTimeout)
		assert.ErrorIs(t, err, ErrConnection)
		assert.ErrorContains(t, err, "broker:1")
		wg.Wait()
		for _, c := range conns {
			assert.Same(t, conns[0], c)
		}
		assert.EqualValues(t, 1, dials.Load())
		assert.Equal(t, []string{"broker:1"}, p.Addrs())
		p.Close()
		require.NoError(t, s.Close(t.Context()))
	})
}

// One dead address does not hold up another.
func TestDialsAreIndependent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newPipeNet()
		s := NewServer(ServerConfig{Config: Config{Handler: echo}})
		require.NoError(t, s.Serve(n))
		p := NewPool(PoolConfig{Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if addr == "hole:1" {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return n.Dial(ctx, network, addr)
		}})
		start := time.Now()
		hole := make(chan error, 1)
		go func() {
			_, err := p.Get(t.Context(), "hole:1")
			hole <- err
		}()
		synctest.Wait()
		_, err := p.Call(t.Context(), "broker:1", &wire.Command{Code: codeEcho})
		assert.NoError(t, err)
		assert.Zero(t, time.Since(start))
		err = <-hole
		assert.ErrorIs(t, err, ErrTimeout)
		assert.ErrorContains(t, err, "no connection within 3s")
		assert.Equal(t, 3*time.Second, time.Since(start))
		p.Close()
		require.NoError(t, s.Close(t.Context()))
	})
}

func TestFailedDialsBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := errors.New("refused")
		var dials int
		var down atomic.Bool
		down.Store(true)
		n := newPipeNet()
		s := NewServer(ServerConfig{Config: Config{Handler: echo}})
		require.NoError(t, s.Serve(n))
		p := NewPool(PoolConfig{Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
			dials++
			if down.Load() {
				return nil, refused
			}
			return n.Dial(ctx, network, addr)
		}})
		get := func() error {
			_, err := p.Get(t.Context(), "broker:1")
			return err
		}
		require.ErrorIs(t, get(), refused)
		for range 10 {
			err := get()
			require.ErrorIs(t, err, refused)
			require.ErrorContains(t, err, "next attempt in")
		}
		assert.Equal(t, 1, dials, "the address is left alone")
		for range 6000 { // ten minutes of a caller that never gives up
			time.Sleep(100 * time.Millisecond)
			require.Error(t, get())
		}
		assert.Greater(t, dials, 50)
		assert.Less(t, dials, 90, "an attempt each ten seconds or so")
		down.Store(false)
		time.Sleep(12 * time.Second)
		require.NoError(t, get())
		down.Store(true)
		p.Lookup("broker:1").Close(nil)
		synctest.Wait()
		before := dials
		require.ErrorIs(t, get(), refused, "after a success the next dial is made at once")
		assert.Equal(t, before+1, dials)
		time.Sleep(150 * time.Millisecond)
		require.Error(t, get())
		assert.Equal(t, before+2, dials, "and the waiting times begin anew")
		p.Close()
		require.NoError(t, s.Close(t.Context()))
	})
}

func TestPoolFollowsGoAway(t *testing.T) {
	var conns atomic.Int32
	_, addr := serveTCP(t, ServerConfig{Config: Config{
		OnOpen: func(c *Conn) { c.SetValue(conns.Add(1)) },
		Handler: func(r *Request) {
			if r.Conn().Value() == int32(1) {
				r.Reply(wire.RespGoAway, "", nil, nil)
				return
			}
			echo(r)
		},
	}})
	p := newPool(t, PoolConfig{})
	old := get(t, p, addr)
	f, err := p.Call(t.Context(), addr, &wire.Command{Code: codeEcho, Body: []byte("again")})
	require.NoError(t, err)
	assert.Equal(t, "again", string(f.Body))
	assert.NotSame(t, old, get(t, p, addr))
	within(t, old.Done(), "the retired connection to close")
	assert.ErrorIs(t, old.Err(), ErrGoAway)
}

// A server that only ever says GO_AWAY gets two tries.
func TestGoAwayIsRepeatedOnce(t *testing.T) {
	var calls atomic.Int32
	_, addr := serveTCP(t, ServerConfig{Config: Config{Handler: func(r *Request) {
		calls.Add(1)
		r.Reply(wire.RespGoAway, "", nil, nil)
	}}})
	_, err := newPool(t, PoolConfig{}).Call(t.Context(), addr, &wire.Command{Code: codeEcho})
	assert.ErrorIs(t, err, ErrGoAway)
	assert.EqualValues(t, 2, calls.Load())
}

func TestDropForgets(t *testing.T) {
	_, addr := serveTCP(t, ServerConfig{Config: Config{Handler: echo}})
	p := newPool(t, PoolConfig{})
	assert.Nil(t, p.Lookup(addr))
	c := get(t, p, addr)
	assert.Same(t, c, p.Lookup(addr))
	p.Drop(addr)
	p.Drop("never:1")
	assert.ErrorIs(t, c.Err(), ErrClosed)
	assert.Nil(t, p.Lookup(addr))
	assert.Empty(t, p.Addrs())
	assert.NotSame(t, c, get(t, p, addr))
}

func TestDropDuringDial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newPipeNet()
		s := NewServer(ServerConfig{Config: Config{Handler: echo}})
		require.NoError(t, s.Serve(n))
		p := NewPool(PoolConfig{Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
			time.Sleep(time.Second)
			return n.Dial(ctx, network, addr)
		}})
		got := make(chan *Conn, 1)
		go func() {
			c, _ := p.Get(t.Context(), "broker:1")
			got <- c
		}()
		synctest.Wait()
		p.Drop("broker:1")
		c := <-got
		assert.ErrorIs(t, c.Err(), ErrClosed, "nobody would find it again")
		p.Close()
		require.NoError(t, s.Close(t.Context()))
	})
}

func TestClosedPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(PoolConfig{Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}})
		errs := make(chan error, 1)
		go func() {
			_, err := p.Get(t.Context(), "hole:1")
			errs <- err
		}()
		synctest.Wait()
		start := time.Now()
		p.Close()
		p.Close()
		assert.Zero(t, time.Since(start), "a dial under way is abandoned")
		assert.ErrorIs(t, <-errs, ErrClosed)
		_, err := p.Get(t.Context(), "broker:1")
		assert.ErrorIs(t, err, ErrClosed)
	})
}
