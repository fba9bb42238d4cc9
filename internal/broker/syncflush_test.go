package broker

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// syncBroker is a broker with synchronous flush whose flushes of the commit
// log call f.
func syncBroker(t *testing.T, f func() error) (*Broker, *clock.Manual) {
	c := clock.NewManual(testStart)
	return startBroker(t, withClock(c), func(cfg *Config) {
		cfg.Store.SyncFlush = true
		cfg.Store.FS = mfile.Hooked(mfile.NewMemory(), func(op mfile.Op, path string, _, _ int64) error {
			if op == mfile.OpSync && strings.Contains(path, "commitlog") {
				return f()
			}
			return nil
		})
	}), c
}

func TestSyncFlushAnswers(t *testing.T) {
	flushing, flushed := make(chan struct{}, 10), make(chan error, 10)
	defer close(flushed)
	b, c := syncBroker(t, func() error {
		flushing <- struct{}{}
		return <-flushed
	})
	p := dial(t, b)
	send := func(props ...string) <-chan *wire.Frame {
		return p.async(wire.ReqSendMessageV2, sendHeader("T", 0, props...))
	}
	first := send()
	<-flushing
	require.Empty(t, first, "answered before it was on disk")
	f := p.must(wire.ReqSendMessageV2, sendHeader("T", 0, "WAIT", "false"), []byte("x"))
	var resp wire.SendResponse
	require.NoError(t, resp.DecodeExt(f))
	require.Equal(t, int64(1), resp.QueueOffset)
	flushed <- nil
	require.Equal(t, wire.RespSuccess, (<-first).Code)
	<-flushing // with the second message

	before := b.Store().Stats().MaxPhy
	late := send("WAIT", "true")
	require.Eventually(t, func() bool { return b.Store().Stats().MaxPhy > before }, 30*time.Second, time.Millisecond)
	c.Advance(5 * time.Second)
	f = <-late
	require.Equal(t, wire.RespFlushDiskTimeout, f.Code)
	require.NoError(t, resp.DecodeExt(f))
	require.Equal(t, int64(2), resp.QueueOffset, "a late message is stored and says where")
	flushed <- nil
	<-flushing
	flushed <- nil
	require.NoError(t, b.Store().WaitDispatched(t.Context()))
	require.Equal(t, int64(3), b.Store().MaxOffset("T", 0))
}

func TestSyncFlushFailureRefuses(t *testing.T) {
	var fail atomic.Bool
	b, _ := syncBroker(t, func() error {
		if fail.Load() {
			return errors.New("medium error")
		}
		return nil
	})
	p := dial(t, b)
	p.send(b, "T", 0, "kept")
	fail.Store(true)
	for range 2 {
		f := p.call(wire.ReqSendMessageV2, sendHeader("T", 0), []byte("x"))
		require.Equal(t, wire.RespServiceNotAvailable, f.Code)
		require.Contains(t, string(f.Remark), "medium error")
		require.Contains(t, string(f.Remark), "00000000000000000000")
	}
	require.ErrorContains(t, b.Store().WaitDispatched(t.Context()), "medium error")
}
