package remoting

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

// gate is a peer that reads nothing until it is opened and then checks that
// what arrives is a sequence of whole frames.
type gate struct {
	open   chan struct{}
	bodies chan []byte
}

func newGate() *gate { return &gate{make(chan struct{}), make(chan []byte, 1000)} }

func (g *gate) serve(nc net.Conn) {
	<-g.open
	var f wire.Frame
	in := input{max: firstBuffer}
	for {
		b, err := in.next(nc, 0, func() {})
		if err != nil || f.Decode(b) != nil {
			close(g.bodies)
			return
		}
		g.bodies <- append([]byte{}, f.Body...)
	}
}

func big(id byte, size int) *wire.Command {
	b := make([]byte, size)
	for i := range b {
		b[i] = id
	}
	return &wire.Command{Code: codeEcho, Body: b}
}

// A peer that does not read holds nobody: the caller that is stuck in its
// write gets out, and the stream is whole when the peer reads again.
func TestFrozenPeerReleasesTheCaller(t *testing.T) {
	g := newGate()
	addr := rawServer(t, g.serve)
	p := newPool(t, PoolConfig{Config: Config{Silence: -1}})
	c := get(t, p, addr)
	const n, size = 8, 3 << 20 // more than the sockets' buffers take
	for i := range n {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		start := time.Now()
		_, err := c.Call(ctx, big(byte(i), size))
		assert.ErrorIs(t, err, ErrTimeout)
		assert.Less(t, time.Since(start), 3*time.Second)
		cancel()
		if c.out.full(c.cfg.HighWater) != nil {
			break
		}
	}
	require.NoError(t, c.Err())
	require.Zero(t, c.Pending())
	assert.ErrorIs(t, c.CallOneway(big(0, 1)), ErrBusy)
	_, err := c.Start(&once{}, time.Now().Add(time.Hour), Try)
	assert.ErrorIs(t, err, ErrBusy)

	waiting := make(chan error, 1)
	go func() { waiting <- c.Oneway(command{big(99, size), c.cfg, wire.FlagOneway}, time.Time{}, Inline) }()
	close(g.open)
	require.NoError(t, within(t, waiting, "room in the buffer"))
	for last := byte(0); last != 99; {
		b := within(t, g.bodies, "a frame")
		require.Len(t, b, size)
		require.True(t, b[0] >= last && b[size-1] == b[0] && b[size/2] == b[0])
		last = b[0]
	}
	require.NoError(t, c.Flush(t.Context()))
	p.Close()
}

func TestPeerThatNeverReadsIsDead(t *testing.T) {
	for _, m := range []Mode{Inline, Later} {
		synctest.Test(t, func(t *testing.T) {
			c := pipeConn(t, PoolConfig{}, func(nc net.Conn) { <-t.Context().Done() })
			start := time.Now()
			x := &call{command: command{big(1, 1), c.cfg, 0}, done: make(chan struct{})}
			_, err := c.Start(x, time.Time{}, m)
			require.NoError(t, err)
			assert.Less(t, time.Since(start), 200*time.Millisecond)
			<-x.done
			assert.ErrorIs(t, x.err, ErrStalled)
			assert.ErrorIs(t, x.err, ErrConnection)
			assert.InDelta(t, DefaultWriteStall.Seconds(), time.Since(start).Seconds(), 0.3)
		})
	}
}

// Over TLS a write cannot be continued, so the connection ends with it.
func TestStalledTLSPeerIsDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := pipeConn(t, PoolConfig{}, func(nc net.Conn) {
			_, _ = io.ReadFull(nc, make([]byte, tlsChunk)) // progress at first
			<-t.Context().Done()
		})
		c.resumable = false
		start := time.Now()
		require.NoError(t, c.Oneway(command{big(1, 3*tlsChunk), c.cfg, wire.FlagOneway}, time.Time{}, Inline))
		assert.Zero(t, time.Since(start), "the caller does not write itself")
		<-c.Done()
		assert.ErrorIs(t, c.Err(), ErrStalled)
		assert.InDelta(t, DefaultWriteStall.Seconds(), time.Since(start).Seconds(), 0.3)
	})
}

// Without a limit a stalled peer is waited for, and no write is ended.
func TestWriteStallCanBeSwitchedOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := pipeConn(t, PoolConfig{Config: Config{WriteStall: -1, IdleTimeout: -1}}, func(nc net.Conn) {
			time.Sleep(time.Hour)
			_, _ = io.Copy(io.Discard, nc)
		})
		require.NoError(t, c.Oneway(command{big(1, 1000), c.cfg, wire.FlagOneway}, time.Time{}, Inline))
		start := time.Now()
		require.NoError(t, c.Flush(t.Context()))
		assert.Equal(t, time.Hour, time.Since(start).Round(time.Minute))
	})
}

func TestIdleConnectionGivesItsBuffersBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, end := pipeEnds(t, ServerConfig{Config: Config{Handler: echo}}, PoolConfig{})
		defer end()
		kept := func() int {
			c.out.mu.Lock()
			defer c.out.mu.Unlock()
			return cap(c.out.buf) + cap(c.out.spare)
		}
		call1(t, c, codeEcho, "x")
		require.NoError(t, c.Flush(t.Context()))
		require.Positive(t, kept())
		time.Sleep(DefaultIdleTimeout / 2)
		synctest.Wait()
		assert.Zero(t, kept())
		call1(t, c, codeEcho, "x")
	})
}

// A peer that reads slowly is not a dead one, even if a single write takes
// longer than the limit.
func TestSlowPeerLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		read := make(chan int, 1)
		c := pipeConn(t, PoolConfig{}, func(nc net.Conn) {
			n := 0
			for b := make([]byte, 1000); n < 20_000; time.Sleep(5 * time.Second) {
				k, err := nc.Read(b)
				if err != nil {
					break
				}
				n += k
			}
			read <- n
			<-t.Context().Done()
		})
		require.NoError(t, c.Oneway(command{big(1, 20_000), c.cfg, wire.FlagOneway}, time.Time{}, Inline))
		assert.GreaterOrEqual(t, <-read, 20_000)
		assert.NoError(t, c.Err())
	})
}

// pipeConn is a connection whose other end is given to peer.
func pipeConn(t *testing.T, cfg PoolConfig, peer func(nc net.Conn)) *Conn {
	t.Helper()
	var wg sync.WaitGroup
	cfg.Dial = func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		wg.Go(func() { peer(server); server.Close() })
		return client, nil
	}
	p := NewPool(cfg)
	t.Cleanup(func() { p.Close(); wg.Wait() })
	return get(t, p, "peer:1")
}

func TestFullBufferMakesCallersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		proceed := make(chan struct{})
		c := pipeConn(t, PoolConfig{Config: Config{HighWater: 10_000}}, func(nc net.Conn) {
			select {
			case <-proceed:
			case <-t.Context().Done():
			}
			_, _ = io.Copy(io.Discard, nc)
		})
		require.NoError(t, c.Oneway(command{big(1, 10_000), c.cfg, wire.FlagOneway}, time.Time{}, Later))
		start := time.Now()
		_, err := c.Start(&once{}, start.Add(2*time.Second), Inline)
		assert.ErrorIs(t, err, ErrTimeout)
		assert.Equal(t, 2*time.Second, time.Since(start))
		assert.Zero(t, c.Pending())

		sent := make(chan error, 1)
		go func() { sent <- c.Oneway(command{big(2, 1), c.cfg, wire.FlagOneway}, time.Time{}, Later) }()
		synctest.Wait()
		assert.Empty(t, sent)
		close(proceed)
		assert.NoError(t, <-sent)
		assert.NoError(t, c.Flush(t.Context()))
	})
}

func TestWaitingCallersFailWithTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := pipeConn(t, PoolConfig{Config: Config{HighWater: 10}}, func(nc net.Conn) { <-t.Context().Done() })
		require.NoError(t, c.Oneway(command{big(1, 10), c.cfg, wire.FlagOneway}, time.Time{}, Later))
		errs := make(chan error, 2)
		go func() { errs <- c.Oneway(oneway{}, time.Time{}, Later) }()
		go func() { errs <- c.Flush(context.Background()) }()
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		assert.ErrorIs(t, c.Flush(ctx), context.Canceled)
		c.Close(nil)
		assert.ErrorIs(t, <-errs, ErrConnection)
		assert.ErrorIs(t, <-errs, ErrConnection)
	})
}

// Replies cannot wait; a peer that asks and never reads is cut off.
func TestTooManyRepliesCloseTheConnection(t *testing.T) {
	closed := make(chan error, 1)
	_, addr := serveTCP(t, ServerConfig{Config: Config{
		MaxOutput: 1 << 20,
		Handler:   func(r *Request) { r.Reply(0, "", nil, make([]byte, 1<<20-1000)) },
		OnClose:   func(_ *Conn, err error) { closed <- err },
	}})
	nc, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer nc.Close()
	var frames []byte
	for range 200 {
		frames = append(frames, frameOf(1, nil)...)
	}
	_, err = nc.Write(frames)
	require.NoError(t, err)
	assert.ErrorIs(t, within(t, closed, "the server to give up"), ErrOverflow)
}

// Frames of many callers share few writes, and so do their answers.
func TestCallersShareWrites(t *testing.T) {
	var writes, reads, swrites, sreads atomic.Int64
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := NewServer(ServerConfig{Config: Config{Handler: func(r *Request) { r.ReplyAppend(sendResponse{}) }}})
	require.NoError(t, s.Serve(countListener{ln, &swrites, &sreads}))
	defer s.Close(context.Background())
	p := newPool(t, PoolConfig{Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		return countConn{c, &writes, &reads}, err
	}})
	c := get(t, p, ln.Addr().String())
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2)) // with a core for each caller there is less to share
	for _, tc := range []struct {
		callers int
		limit   float64
	}{{1, 1.2}, {16, 0.5}, {128, 0.2}} {
		writes.Store(0)
		var wg sync.WaitGroup
		const each = 50
		for range tc.callers {
			wg.Go(func() {
				x := &sendExchange{body: make([]byte, 1024), done: make(chan struct{}, 1)}
				for range each {
					if _, err := c.Start(x, time.Now().Add(time.Minute), Inline); err != nil {
						t.Error(err)
						return
					}
					<-x.done
				}
			})
		}
		wg.Wait()
		perCall := float64(writes.Load()) / float64(tc.callers*each)
		assert.LessOrEqual(t, perCall, tc.limit, "%d callers", tc.callers)
	}
}

// With the buffers warm, a pooled call allocates nothing on either side.
func TestCallAllocatesNothing(t *testing.T) {
	_, addr := serveTCP(t, ServerConfig{Config: Config{Handler: func(r *Request) { r.ReplyAppend(sendResponse{}) }}})
	c := get(t, newPool(t, PoolConfig{}), addr)
	x := &sendExchange{body: make([]byte, 1024), done: make(chan struct{}, 1)}
	allocs := testing.AllocsPerRun(500, func() {
		if _, err := c.Start(x, time.Now().Add(time.Minute), Inline); err != nil {
			t.Error(err)
		}
		<-x.done
	})
	assert.LessOrEqual(t, allocs, 1.0)
}

// Frames arrive in the order in which they were appended, whoever wrote them.
func TestOrderIsKept(t *testing.T) {
	got := make(chan uint32, 3000)
	_, addr := serveTCP(t, ServerConfig{Config: Config{Handler: func(r *Request) {
		got <- binary.BigEndian.Uint32(r.Frame().Body)
	}}})
	c := get(t, newPool(t, PoolConfig{}), addr)
	for i := range uint32(3000) {
		b := binary.BigEndian.AppendUint32(nil, i)
		require.NoError(t, c.Oneway(command{&wire.Command{Code: codeEcho, Body: b}, c.cfg, wire.FlagOneway}, time.Time{}, Mode(i%2)))
	}
	for i := range uint32(3000) {
		require.Equal(t, i, within(t, got, "a frame"))
	}
}
