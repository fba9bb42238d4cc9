package broker

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// gauge is how full a broker's disk is.
type gauge struct{ used atomic.Value }

func withDisk(g *gauge) func(*Config) {
	g.used.Store(0.5)
	return func(c *Config) {
		c.Store.DiskUsage = func(string) (float64, error) { return g.used.Load().(float64), nil }
	}
}

// TestC62_FullDisk: while the disk is too full sends are refused with code 14
// and a remark that says all; consumers read and commit. Writes resume by
// themselves within 10 s, and no offset is left out.
func TestC62_FullDisk(t *testing.T) {
	var g gauge
	c := clock.NewManual(testStart)
	b := startBroker(t, withClock(c), withDisk(&g))
	p := dial(t, b)
	require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
	for i := range 3 {
		p.send(b, "T", 0, fmt.Sprint(i))
	}
	send := func() *wire.Frame { return p.call(wire.ReqSendMessageV2, sendHeader("T", 0), []byte("more")) }

	g.used.Store(0.95)
	accepted := 0
	advanceUntil(t, c, 10*time.Second, func() bool {
		f := send()
		if f.Code == wire.RespSuccess {
			accepted++
		}
		return f.Code == wire.RespServiceNotAvailable
	})
	for range 3 {
		f := send()
		require.EqualValues(t, wire.RespServiceNotAvailable, f.Code)
		require.Equal(t, "SERVICE_NOT_AVAILABLE: store: the disk of /store/commitlog is 95% full, messages are refused above 90%; "+
			"free some space, or raise diskSpaceWarningLevelRatio", string(f.Remark))
	}
	batch := sendHeader("T", 0)
	batch.Batch = true
	f := p.call(wire.ReqSendBatchMessage, batch, wire.AppendBatchItem(nil, 0, []byte("x"), nil))
	require.EqualValues(t, wire.RespServiceNotAvailable, f.Code)

	pull := pullHeaderOf("CG", "T", 0, 1)
	pull.SysFlag |= wire.PullCommitOffset
	pull.CommitOffset = 1
	f = p.must(wire.ReqPullMessage, pull, nil)
	require.Equal(t, []string{"1", "2"}, bodies(t, f)[:2])
	off, _ := b.Offset("CG", "T", 0)
	require.EqualValues(t, 1, off)
	p.must(wire.ReqUpdateConsumerOffset, &wire.UpdateOffsetRequest{Group: "CG", Topic: "T", Offset: 3}, nil)
	off, _ = b.Offset("CG", "T", 0)
	require.EqualValues(t, 3, off)
	require.Equal(t, "0.95", b.runtimeInfo()["commitLogDiskRatio"])
	waiting := p.async(wire.ReqPullMessage, holding(pullHeaderOf("CG", "T", 0, int64(3+accepted))))

	g.used.Store(0.6)
	freed := c.Now()
	var resp wire.SendResponse
	advanceUntil(t, c, time.Second, func() bool {
		f := send()
		if f.Code != wire.RespSuccess {
			return false
		}
		require.NoError(t, resp.DecodeExt(f))
		return true
	})
	// Every look is a tick of 10 s; the goroutine may need a second one.
	require.LessOrEqual(t, c.Now().Sub(freed), 20*time.Second)
	require.EqualValues(t, 3+accepted, resp.QueueOffset)
	require.Equal(t, []string{"more"}, bodies(t, <-waiting), "held pulls are woken as ever")
}

// TestC42_CleanedUpQueue: everything has expired. Whoever stands before it is
// told where to go on.
func TestC42_CleanedUpQueue(t *testing.T) {
	var g gauge
	c := clock.NewManual(testStart)
	b := startBroker(t, withClock(c), withDisk(&g), func(cfg *Config) {
		cfg.Store.CommitLogFileSize = 64 << 10
		cfg.Store.DeleteBatch = 1000
		cfg.Store.DeleteInterval = time.Millisecond
	})
	p := dial(t, b)
	require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
	require.NoError(t, b.CreateTopic(t.Context(), "U", 1))
	require.NoError(t, b.PutGroup(wire.NewSubscriptionGroup("CG")))
	const n = 2020
	for i := range n {
		p.must(wire.ReqSendMessageV2, sendHeader("T", 0), fmt.Append(nil, i))
	}
	p.must(wire.ReqUpdateConsumerOffset, &wire.UpdateOffsetRequest{Group: "CG", Topic: "T", Offset: 7}, nil)
	for range 3 {
		p.send(b, "U", 0, string(make([]byte, 40<<10)))
	}
	g.used.Store(0.87)
	advanceUntil(t, c, time.Second, func() bool { return b.Store().MinOffset("T", 0) == n })
	for _, from := range []int64{0, 7, n - 1, n + 1, 1 << 40} {
		f := p.call(wire.ReqPullMessage, holding(pullHeaderOf("CG", "T", 0, from)), nil)
		require.EqualValues(t, wire.RespPullOffsetMoved, f.Code, "from %d", from)
		resp := pullResponse(t, f)
		require.EqualValues(t, n, resp.NextOffset)
		require.EqualValues(t, n, resp.MinOffset)
		require.EqualValues(t, n, resp.MaxOffset)
	}
	f := p.call(wire.ReqPullMessage, pullHeaderOf("CG", "T", 0, n), nil)
	require.EqualValues(t, wire.RespPullNotFound, f.Code)
	var off wire.OffsetResponse
	f = p.must(wire.ReqGetMinOffset, &wire.QueueRequest{Topic: "T"}, nil)
	require.NoError(t, off.DecodeExt(f))
	require.EqualValues(t, n, off.Offset)
	f = p.must(wire.ReqQueryConsumerOffset, &wire.QueryOffsetRequest{Group: "CG", Topic: "T"}, nil)
	require.NoError(t, off.DecodeExt(f))
	require.EqualValues(t, 7, off.Offset, "a group's offset is its own affair")
	require.EqualValues(t, n, p.send(b, "T", 0, "next").QueueOffset)
}

func TestExpiredFilesAreDeletedOnRequest(t *testing.T) {
	c := clock.NewManual(testStart.Add(9 * time.Hour)) // noon
	b := startBroker(t, withClock(c), func(cfg *Config) { cfg.Store.CommitLogFileSize = 64 << 10 })
	p := dial(t, b)
	require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
	for range 3 {
		p.send(b, "T", 0, string(make([]byte, 40<<10)))
	}
	c.Advance(73 * time.Hour)
	p.send(b, "T", 0, "young")
	require.Equal(t, 3, b.Store().Stats().LogFiles)
	p.must(wire.ReqDeleteExpiredCommitLog, nil, nil)
	advanceUntil(t, c, 100*time.Millisecond, func() bool { return b.Store().Stats().LogFiles == 2 })
	advanceUntil(t, c, 100*time.Millisecond, func() bool { return b.Store().MinOffset("T", 0) > 0 })
}

func TestCleaningOfUnusedQueues(t *testing.T) {
	var g gauge
	c := clock.NewManual(testStart)
	b := startBroker(t, withClock(c), withDisk(&g), func(cfg *Config) { cfg.Store.CommitLogFileSize = 64 << 10 })
	p := dial(t, b)
	for _, topic := range []string{"Kept", "Gone", "Later", "U"} {
		require.NoError(t, b.CreateTopic(t.Context(), topic, 2))
		p.send(b, topic, 0, "m")
		p.send(b, topic, 1, "m")
	}
	require.NoError(t, b.CreateTopic(t.Context(), "Kept", 1))
	require.NoError(t, b.PutGroup(wire.NewSubscriptionGroup("CG")))
	p.must(wire.ReqUpdateConsumerOffset, &wire.UpdateOffsetRequest{Group: "CG", Topic: "Later", Offset: 1}, nil)
	b.topics.Delete("Gone") // as a tool does that edits the file
	b.topics.Delete("Later")
	for range 3 {
		p.send(b, "U", 0, string(make([]byte, 40<<10)))
	}
	p.must(wire.ReqCleanExpiredConsumeQueue, nil, nil)
	require.Equal(t, []string{"Gone", "Kept", "Later", "U"}, b.Store().Topics(), "all have messages")
	g.used.Store(0.87)
	advanceUntil(t, c, time.Second, func() bool { return b.Store().MinOffset("Gone", 1) == 1 && b.Store().MinOffset("Kept", 1) == 1 })
	require.NoError(t, b.CreateTopic(t.Context(), "Later", 2))
	p.must(wire.ReqCleanExpiredConsumeQueue, nil, nil)
	require.Equal(t, []string{"Kept", "Later", "U"}, b.Store().Topics())
	require.Equal(t, []int32{0}, b.Store().Queues("Kept"), "its second queue is of the past")
	require.EqualValues(t, 1, p.send(b, "Kept", 0, "m").QueueOffset)

	b.topics.Delete("Later")
	p.must(wire.ReqCleanUnusedTopic, nil, nil)
	require.Equal(t, []string{"Kept", "U"}, b.Store().Topics())
	_, ok := b.Offset("CG", "Later", 0)
	require.False(t, ok)
}

// failing files cannot be written while the test says so.
type failing struct {
	mfile.FS
	mu  sync.Mutex // guards bad
	bad bool
}

func (f *failing) set(bad bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.bad = bad
}

func (f *failing) WriteFile(path string, b []byte) error {
	f.mu.Lock()
	bad := f.bad
	f.mu.Unlock()
	if bad {
		return errors.New("no space left on device")
	}
	return f.FS.WriteFile(path, b)
}

// What could not be saved for lack of room is saved when there is some.
func TestC62_TablesAreSavedLater(t *testing.T) {
	fs := &failing{FS: mfile.NewMemory()}
	c := clock.NewManual(testStart)
	cfg := testConfig(withClock(c), func(cfg *Config) { cfg.Store.FS = fs })
	b := startWith(t, cfg)
	p := dial(t, b)
	require.NoError(t, b.CreateTopic(t.Context(), "T", 1))
	p.send(b, "T", 0, "m")
	fs.set(true)
	require.NoError(t, b.CreateTopic(t.Context(), "Unsaved", 1))
	require.NoError(t, b.PutGroup(wire.NewSubscriptionGroup("CG")))
	p.must(wire.ReqUpdateConsumerOffset, &wire.UpdateOffsetRequest{Group: "CG", Topic: "T", Offset: 1}, nil)
	b.saver.offsets.Ask()
	require.NoError(t, b.saver.offsets.Wait(t.Context(), b.saver.offsets.Ask()))
	fs.set(false)
	saved := func(file, what string) bool {
		doc, err := b.saver.files.ReadFile(file)
		return err == nil && strings.Contains(string(doc), strconv.Quote(what))
	}
	advanceUntil(t, c, 5*time.Second, func() bool {
		return saved("topics.json", "Unsaved") && saved("subscriptionGroup.json", "CG") && saved("consumerOffset.json", "T@CG")
	})
	b.Kill()
	b = startWith(t, cfg)
	off, ok := b.Offset("CG", "T", 0)
	require.True(t, ok)
	require.EqualValues(t, 1, off)
}

func TestCleaningKeys(t *testing.T) {
	c := DefaultConfig()
	unknown, err := c.Load(`
deleteWhen = 04;16
fileReservedTime=48
cleanResourceInterval=5000
deleteFileBatchMax=3
deleteCommitLogFilesInterval=10
deleteConsumeQueueFilesInterval=20
destroyMapedFileIntervalForcibly=60000
diskMaxUsedSpaceRatio=60
diskSpaceCleanForciblyRatio=70
diskSpaceWarningLevelRatio=100
cleanFileForciblyEnable=false
`)
	require.NoError(t, err)
	require.Empty(t, unknown)
	s := c.Store
	require.Equal(t, []int{4, 16}, s.DeleteHours)
	require.Equal(t, []time.Duration{48 * time.Hour, 5 * time.Second, 10 * time.Millisecond, 20 * time.Millisecond, time.Minute},
		[]time.Duration{s.FileReserved, s.CleanInterval, s.DeleteInterval, s.DeleteQueueInterval, s.DeleteRetry})
	require.Equal(t, []int{3, 60, 70, 100}, []int{s.DeleteBatch, s.DiskMaxPercent, s.DiskCleanPercent, s.DiskFullPercent})
	require.True(t, s.NoForcedClean)
	text := string(c.properties())
	for _, line := range []string{"deleteWhen=04;16\n", "fileReservedTime=48\n", "cleanFileForciblyEnable=false\n", "diskSpaceWarningLevelRatio=100\n"} {
		require.Contains(t, text, line)
	}
	for key, bad := range map[string]string{
		"deleteWhen": "25", "fileReservedTime": "0", "diskMaxUsedSpaceRatio": "0", "diskSpaceWarningLevelRatio": "101", "cleanFileForciblyEnable": "maybe",
	} {
		known, err := c.Set(key, bad)
		require.True(t, known)
		require.Error(t, err, key)
	}
	_, err = c.Set("deleteWhen", ";")
	require.Error(t, err)
	d, err := DefaultConfig().withDefaults()
	require.NoError(t, err)
	text = string(d.properties())
	for _, line := range []string{"deleteWhen=04\n", "fileReservedTime=72\n", "cleanFileForciblyEnable=true\n", "diskMaxUsedSpaceRatio=75\n"} {
		require.Contains(t, text, line)
	}
}
