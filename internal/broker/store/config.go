package store

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"path/filepath"
	"time"

	"github.com/gorocketmq/rocketmq/internal/broker/store/cq"
	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Config says where a store lives and how it behaves. The zero value of each
// field means the default given with it; only Dir has none. Defaults are
// those of Apache's MessageStoreConfig unless noted.
type Config struct {
	// Dir is the store's root (storePathRootDir). It is created if missing.
	Dir string
	// FS is where files are; nil: mapped files of the operating system.
	FS mfile.FS
	// CommitLogFileSize is the size of a commit log file in bytes
	// (mappedFileSizeCommitLog): 1 GiB, in a memory FS 16 MiB. A store must
	// always be opened with the size it was made with.
	CommitLogFileSize int64
	// ConsumeQueueFileSize is the size of a consume queue file in bytes
	// (mappedFileSizeConsumeQueue), rounded up to whole units of 20:
	// 6,000,000, in a memory FS 40,000.
	ConsumeQueueFileSize int64
	// IndexSlots and IndexEntries are the hash slots and the entries of an
	// index file, of which one entry is never used (maxHashSlotNum,
	// maxIndexNum): 5,000,000 and 20,000,000, in a memory FS 10,000 and 40,000.
	// A store must always be opened with the numbers it was made with.
	IndexSlots   int32
	IndexEntries int32
	// NoIndex does not add to the key index (messageIndexEnable=false): false.
	// What it has can be queried; what is missing is added when the store is
	// opened without NoIndex.
	NoIndex bool
	// MaxQuery is how many records one [Store.Query] gives at most
	// (maxMsgsNumBatch): 64.
	MaxQuery int32
	// MaxMessageSize limits a body and the sum of a batch's records, in bytes
	// (maxMessageSize): 4 MiB.
	MaxMessageSize int
	// StoreHost is written into every record as its store host: 127.0.0.1:10911.
	StoreHost netip.AddrPort
	// Clock gives store times and paces the flushers: the machine's.
	Clock clock.Clock
	// Logger takes what an operator must know: discarded.
	Logger *slog.Logger

	// SyncFlush makes answers wait until the record is on disk
	// (flushDiskType=SYNC_FLUSH), and consumers see none that is not: false.
	// The log's flush intervals mean nothing then.
	SyncFlush bool
	// SyncFlushTimeout is how long an answer waits for that
	// (syncFlushTimeout), give or take 0.1 s: 5 s. Then it is
	// [FlushDiskTimeout], and the message stays.
	SyncFlushTimeout time.Duration
	// FlushInterval is how often the log's flusher looks (flushIntervalCommitLog): 500 ms.
	FlushInterval time.Duration
	// FlushLeastPages is how many dirty 4 KiB pages make it flush
	// (flushCommitLogLeastPages): 4.
	FlushLeastPages int
	// FlushThorough is how often it flushes whatever there is
	// (flushCommitLogThoroughInterval): 10 s.
	FlushThorough time.Duration
	// QueueFlushInterval, QueueFlushLeastPages and QueueFlushThorough are the
	// same for consume queues (flushIntervalConsumeQueue and so on): 1 s, 2, 60 s.
	QueueFlushInterval   time.Duration
	QueueFlushLeastPages int
	QueueFlushThorough   time.Duration

	// DeleteHours are the hours of the day, in the location of Clock's times,
	// at which files that have expired are removed (deleteWhen): 4.
	DeleteHours []int
	// FileReserved is how long commit log files are kept after their last
	// change (fileReservedTime): 72 h.
	FileReserved time.Duration
	// CleanInterval is how often the cleaner runs and looks at the disks
	// (cleanResourceInterval): 10 s.
	CleanInterval time.Duration
	// DeleteBatch is how many commit log files one run removes at most
	// (deleteFileBatchMax): 10.
	DeleteBatch int
	// DeleteInterval and DeleteQueueInterval are the pauses after the removal
	// of a commit log file and of a consume queue file
	// (deleteCommitLogFilesInterval, deleteConsumeQueueFilesInterval): 100 ms.
	DeleteInterval      time.Duration
	DeleteQueueInterval time.Duration
	// DeleteRetry is when a file that could not be removed is tried again
	// (destroyMapedFileIntervalForcibly): 120 s. Unlike in Apache a file is never
	// taken away from those who read it.
	DeleteRetry time.Duration
	// DiskMaxPercent is the disk usage in percent above which expired files
	// are removed at any hour (diskMaxUsedSpaceRatio): 75. 100 switches that
	// off, and likewise below.
	DiskMaxPercent int
	// DiskCleanPercent is the usage above which the oldest files are removed
	// whatever their age (diskSpaceCleanForciblyRatio): 85.
	DiskCleanPercent int
	// NoForcedClean keeps files until they expire, whatever DiskCleanPercent is
	// (cleanFileForciblyEnable=false).
	NoForcedClean bool
	// DiskFullPercent is the usage above which messages are refused, with a
	// [*DiskFullError] (diskSpaceWarningLevelRatio): 90. They are accepted
	// again within a CleanInterval after there is room.
	DiskFullPercent int
	// DiskUsage tells the used share, 0 to 1, of the disk that a directory is
	// on. Nil: the FS is asked; files in memory use no disk.
	DiskUsage func(path string) (float64, error)

	// SkipRecoverCRC leaves body checksums alone during recovery
	// (checkCRCOnRecover=false).
	SkipRecoverCRC bool

	// MemoryTransferBytes and MemoryTransferCount limit one [Store.Get] of
	// records that are likely in memory (maxTransferBytesOnMessageInMemory,
	// maxTransferCountOnMessageInMemory): 262,144 and 32.
	MemoryTransferBytes int
	MemoryTransferCount int
	// DiskTransferBytes and DiskTransferCount do so for the others: 65,536 and 8.
	DiskTransferBytes int
	DiskTransferCount int
	// FilterBytes bounds how many consume queue bytes a Get examines when few
	// records match (maxFilterMessageSize): 16,000, that is 800 units.
	FilterBytes int
	// MemoryBytes is what counts as in memory: records closer than this to
	// the log's end. MemoryPercent of the physical memory; 3 GiB where that is
	// not known.
	MemoryBytes int64
	// MemoryPercent is accessMessageInMemoryMaxRatio: 40.
	MemoryPercent int

	// DelayLevels are the delays of SCHEDULE_TOPIC_XXXX, level 1 first
	// (messageDelayLevel): Apache's eighteen. They turn into the due times
	// that the units of that topic carry in place of a tags code.
	DelayLevels []time.Duration

	// OnArrival is called by the dispatcher once a record can be read through
	// its consume queue, in the order of the log. It must not block nor call
	// methods of the store that wait. Nil: nobody is told. Records that are
	// dispatched during Open are not announced.
	OnArrival func(Arrival)
}

// Arrival is one record that has become readable. Its slices are valid during
// the call only.
type Arrival struct {
	Topic      []byte
	QueueID    int32
	Offset     int64 // queue offset; the queue's maximum is now Offset+1
	TagsCode   int64
	StoreTime  int64 // ms
	Properties wire.Properties
}

// withDefaults fills in what was left out.
func (c Config) withDefaults() (Config, error) {
	if c.Dir == "" {
		return c, errors.New("store: no directory given; set Config.Dir")
	}
	c.Dir = filepath.Clean(c.Dir)
	if c.FS == nil {
		c.FS = mfile.OS()
	}
	logSize, queueSize := int64(1<<30), int64(300_000*cq.UnitSize)
	slots, entries := int32(5_000_000), int32(20_000_000)
	if c.FS.InMemory() {
		logSize, queueSize = 16<<20, 2_000*cq.UnitSize
		slots, entries = 10_000, 40_000
	}
	set(&c.IndexSlots, slots)
	set(&c.IndexEntries, entries)
	set(&c.MaxQuery, 64)
	set(&c.CommitLogFileSize, logSize)
	set(&c.ConsumeQueueFileSize, queueSize)
	set(&c.MaxMessageSize, 4<<20)
	set(&c.SyncFlushTimeout, 5*time.Second)
	set(&c.FlushInterval, 500*time.Millisecond)
	set(&c.FlushLeastPages, 4)
	set(&c.FlushThorough, 10*time.Second)
	set(&c.QueueFlushInterval, time.Second)
	set(&c.QueueFlushLeastPages, 2)
	set(&c.QueueFlushThorough, time.Minute)
	set(&c.FileReserved, 72*time.Hour)
	set(&c.CleanInterval, 10*time.Second)
	set(&c.DeleteBatch, 10)
	set(&c.DeleteInterval, 100*time.Millisecond)
	set(&c.DeleteQueueInterval, 100*time.Millisecond)
	set(&c.DeleteRetry, 120*time.Second)
	set(&c.DiskMaxPercent, 75)
	set(&c.DiskCleanPercent, 85)
	set(&c.DiskFullPercent, 90)
	if c.DeleteHours == nil {
		c.DeleteHours = []int{4}
	}
	if c.DiskUsage == nil {
		c.DiskUsage = usageOf(c.FS)
	}
	set(&c.MemoryTransferBytes, 256<<10)
	set(&c.MemoryTransferCount, 32)
	set(&c.DiskTransferBytes, 64<<10)
	set(&c.DiskTransferCount, 8)
	set(&c.FilterBytes, 16_000)
	set(&c.MemoryPercent, 40)
	set(&c.MemoryBytes, physicalMemory()/100*int64(c.MemoryPercent))
	set(&c.MemoryBytes, 3<<30)
	if c.CommitLogFileSize < minCommitLogFileSize || c.ConsumeQueueFileSize < cq.UnitSize {
		return c, fmt.Errorf("store: file sizes %d and %d: a commit log file needs at least %d bytes, a consume queue file %d",
			c.CommitLogFileSize, c.ConsumeQueueFileSize, minCommitLogFileSize, cq.UnitSize)
	}
	c.ConsumeQueueFileSize = (c.ConsumeQueueFileSize + cq.UnitSize - 1) / cq.UnitSize * cq.UnitSize
	if !c.StoreHost.IsValid() {
		c.StoreHost = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 10911)
	}
	if c.Clock == nil {
		c.Clock = clock.Real()
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.DelayLevels == nil {
		c.DelayLevels = DefaultDelayLevels()
	}
	return c, nil
}

// minCommitLogFileSize keeps the smallest record and the filler after it
// within a file.
const minCommitLogFileSize = 4 << 10

func set[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}
