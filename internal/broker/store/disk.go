package store

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"sync/atomic"

	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
)

// DiskFullError is why a store takes no messages: a disk is fuller than it
// may be. It goes away by itself, see [Config.DiskFullPercent].
type DiskFullError struct {
	Path  string  // a directory on the disk
	Used  float64 // its used share, 0 to 1
	Limit float64 // messages are refused above this
}

// Error implements error. Clients see it as the remark of code 14.
func (e *DiskFullError) Error() string {
	return fmt.Sprintf("store: the disk of %s is %.0f%% full, messages are refused above %.0f%%; free some space, or raise diskSpaceWarningLevelRatio",
		e.Path, e.Used*100, e.Limit*100)
}

// disks watches how full the disks of log and consume queues are. All but full
// belongs to the cleaner.
type disks struct {
	cfg   *Config
	paths [2]string  // of the log and of the queues
	used  [2]float64 // at the last look
	err   error      // of the last look

	// full is why nothing may be written, nil while it may.
	full atomic.Pointer[DiskFullError]
}

func (d *disks) init(cfg *Config) {
	d.cfg = cfg
	d.paths = [2]string{filepath.Join(cfg.Dir, "commitlog"), filepath.Join(cfg.Dir, "consumequeue")}
}

// look asks how full the disks are and draws the conclusions. A disk that does
// not answer counts as it was.
func (d *disks) look() {
	var full *DiskFullError
	var failed error
	limit := percent(d.cfg.DiskFullPercent)
	for i, path := range d.paths {
		if used, err := d.cfg.DiskUsage(path); err == nil {
			d.used[i] = used
		} else {
			failed = errors.Join(failed, fmt.Errorf("usage of the disk of %s: %w", path, err))
		}
		if d.used[i] > limit && full == nil {
			full = &DiskFullError{Path: path, Used: d.used[i], Limit: limit}
		}
	}
	if failed != nil && d.err == nil {
		d.cfg.Logger.Warn("nobody knows how full the disk is", "err", failed)
	}
	d.err = failed
	switch old := d.full.Swap(full); {
	case full != nil && old == nil:
		d.cfg.Logger.Error("the disk is full, messages are refused", "path", full.Path, "used", full.Used, "limit", full.Limit)
	case full == nil && old != nil:
		d.cfg.Logger.Info("the disk has room, messages are accepted again", "path", old.Path)
	}
}

// most is the used share of the fuller disk.
func (d *disks) most() float64 { return max(d.used[0], d.used[1]) }

func percent(n int) float64 { return float64(n) / 100 }

// usageOf returns the usual [Config.DiskUsage]: what the system says, in whole
// percent, rounded up as Apache does.
func usageOf(fsys mfile.FS) func(path string) (float64, error) {
	return func(path string) (float64, error) {
		total, available, err := fsys.Usage(path)
		if errors.Is(err, fs.ErrNotExist) { // not made yet
			total, available, err = fsys.Usage(filepath.Dir(path))
		}
		if err != nil || total <= 0 {
			return 0, err
		}
		return math.Ceil(float64(total-available)*100/float64(total)) / 100, nil
	}
}
