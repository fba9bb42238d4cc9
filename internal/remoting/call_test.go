package remoting

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

func TestCallEchoes(t *testing.T) {
	_, addr := serveTCP(t, ServerConfig{Config: Config{Handler: echo}})
	for _, enc := range []wire.Encoding{wire.JSON, wire.Binary} {
		p := newPool(t, PoolConfig{Config: Config{Encoding: enc}})
		f, err := p.Call(t.Context(), addr, &wire.Command{Code: codeEcho, Body: []byte("hello")})
		require.NoError(t, err)
		assert.Equal(t, "hello", string(f.Body))
		assert.Equal(t, enc, f.Encoding, "the answer has the request's encoding")
		assert.Equal(t, wire.Version479, f.Version)
		assert.Zero(t, get(t, p, addr).Pending())
	}
}

// POP codes have more than the 16 bits of the binary header.
func TestLargeCodesGoAsJSON(t *testing.T) {
	_, addr := serveTCP(t, ServerConfig{Config: Config{Handler: func(r *Request) {
		r.Reply(0, "", nil, []byte(wire.RequestName(r.Frame().Code)))
	}}})
	p := newPool(t, PoolConfig{Config: Config{Encoding: wire.Binary}})
	f, err := p.Call(t.Context(), addr, &wire.Command{Code: wire.ReqPopMessage})
	require.NoError(t, err)
	assert.Equal(t, "POP_MESSAGE", string(f.Body))
}

func TestCallTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, end := pipeEnds(t, ServerConfig{Config: Config{Handler: (*Request).Drop}}, PoolConfig{})
		defer end()
		for _, limit := range []time.Duration{300 * time.Millisecond, 0} {
			ctx, want := t.Context(), DefaultCallTimeout
			if limit > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, limit)
				defer cancel()
				want = limit
			}
			start := time.Now()
			_, err := c.Call(ctx, &wire.Command{Code: codeEcho})
			assert.ErrorIs(t, err, ErrTimeout)
			assert.ErrorIs(t, err, context.DeadlineExceeded)
			assert.NotErrorIs(t, err, ErrConnection)
			assert.InDelta(t, want.Seconds(), time.Since(start).Seconds(), (2 * tick).Seconds())
			assert.Zero(t, c.Pending())
		}
	})
}

func TestCallIsCancelled(t *testing.T) {
	arrived := make(chan struct{}, 1)
	_, addr := serveTCP(t, ServerConfig{Config: Config{Handler: func(r *Request) {
		r.Drop()
		arrived <- struct{}{}
	}}})
	c := get(t, newPool(t, PoolConfig{}), addr)
	stop := errors.New("changed my mind")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		<-arrived
		cancel(stop)
	}()
	_, err := c.Call(ctx, &wire.Command{Code: codeEcho})
	assert.ErrorIs(t, err, stop)
	assert.Zero(t, c.Pending())
	assert.NoError(t, c.Err(), "the connection lives on")

	_, err = c.Call(ctx, &wire.Command{Code: codeEcho})
	assert.ErrorIs(t, err, stop, "nothing is sent for a context that has ended")
}

func TestOnewayGetsNoAnswer(t *testing.T) {
	got := make(chan int32, 3)
	_, addr := serveTCP(t, ServerConfig{Config: Config{Handler: func(r *Request) {
		got <- r.Frame().Flag
		r.Reply(0, "", nil, []byte("unwanted"))
		r.Replier().Reply(0, "", nil, []byte("unwanted"))
	}}})
	c := get(t, newPool(t, PoolConfig{}), addr)
	require.NoError(t, c.CallOneway(&wire.Command{Code: codeEcho}))
	require.NoError(t, c.Oneway(oneway{}, time.Time{}, Inline))
	assert.Equal(t, wire.FlagOneway, within(t, got, "first one-way"))
	assert.Equal(t, wire.FlagOneway, within(t, got, "second one-way"))
	before := c.received.Load()
	_, err := c.Call(t.Context(), &wire.Command{Code: codeEcho})
	require.NoError(t, err)
	assert.Equal(t, before+1, c.received.Load(), "the first thing to arrive is the answer to the call")
}

type oneway struct{}

func (oneway) AppendFrame(dst []byte, opaque int32) []byte {
	e := wire.Begin(dst, wire.Head{Code: codeEcho, Opaque: opaque, Flag: wire.FlagOneway})
	return e.Finish(nil)
}

type needless struct{}

func (needless) AppendFrame(dst []byte, _ int32) []byte { return dst }

// A one-way frame that writes nothing leaves the stream and the right to write
// as they are.
func TestNeedlessOneway(t *testing.T) {
	_, addr := serveTCP(t, ServerConfig{Config: Config{Handler: echo}})
	c := get(t, newPool(t, PoolConfig{}), addr)
	for _, m := range []Mode{Inline, Later, Try} {
		require.NoError(t, c.Oneway(needless{}, time.Time{}, m))
		require.NoError(t, c.Flush(t.Context()))
		call1(t, c, codeEcho, "x")
	}
}

// A request that cannot be sent fails alone, whatever is wrong with it.
func TestRequestThatCannotBeEncoded(t *testing.T) {
	_, addr := serveTCP(t, ServerConfig{Config: Config{Handler: echo}})
	c := get(t, newPool(t, PoolConfig{Config: Config{MaxFrame: 4096}}), addr)
	_, err := c.Call(t.Context(), &wire.Command{Code: codeEcho, Body: make([]byte, 5000)})
	assert.ErrorIs(t, err, ErrFrameTooLarge)
	assert.Panics(t, func() {
		_, _ = c.Call(t.Context(), &wire.Command{Code: codeEcho, Ext: panicking{}})
	})
	assert.Zero(t, c.Pending())
	f, err := c.Call(t.Context(), &wire.Command{Code: codeEcho, Body: []byte("still here")})
	require.NoError(t, err)
	assert.Equal(t, "still here", string(f.Body))
}

type panicking struct{}

func (panicking) EncodeExt(e *wire.Encoder) {
	e.Text("half", "written")
	panic("encoder is broken")
}

type signer struct{}

func (signer) Sign() (string, string, func([]byte) string) {
	return "key", "", func(content []byte) string { return "signed " + string(content) }
}

func TestCallsAreSigned(t *testing.T) {
	_, addr := serveTCP(t, ServerConfig{Config: Config{Handler: func(r *Request) {
		f := r.Frame()
		r.Reply(0, "", nil, []byte(f.Text("AccessKey")+" "+f.Text("Signature")))
	}}})
	p := newPool(t, PoolConfig{Config: Config{Signer: signer{}}})
	f, err := p.Call(t.Context(), addr, &wire.Command{Code: codeEcho, Body: []byte("body")})
	require.NoError(t, err)
	assert.Equal(t, "key signed keybody", string(f.Body))
}

// A peer that answers nothing any more is found out by the first call that
// times out, not by TCP a quarter of an hour later.
func TestSilentPeerLosesItsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, end := pipeEnds(t, ServerConfig{Config: Config{Handler: (*Request).Drop}}, PoolConfig{})
		defer end()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.Call(ctx, &wire.Command{Code: codeEcho})
		require.ErrorIs(t, err, ErrTimeout)
		require.NoError(t, c.Err(), "a short timeout proves nothing")
		_, err = c.Call(t.Context(), &wire.Command{Code: codeEcho})
		require.ErrorIs(t, err, ErrTimeout)
		<-c.Done()
		assert.ErrorIs(t, c.Err(), ErrSilent)
	})
}
