package consumer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// FileOffsets keeps offsets in dir, in a file for each group:
// dir/GROUP/offsets.json, with the contents of Java's LocalFileOffsetStore (4.9 to
// 5.5), in both directions. So a group whose members were Java clients goes on where they stopped if dir is their
// ~/.rocketmq_offsets/CLIENTID. In the name, bytes other than letters, digits, - and _ are
// written as %XX.
//
// A file is replaced as a whole and never written in place: the new one is written
// beside it and synced, the old one becomes offsets.json.bak, the new one takes its
// name. If offsets.json is missing or damaged when a member starts, the backup is
// taken, which is some seconds older, so messages come again but none is
// passed over. If that is damaged, too, or was never made, queues begin at
// [StartFrom]. Both is logged as an error, see [ErrOffsetsDamaged]; the damaged
// file is kept as offsets.json.damaged. Only if both files are missing does the group
// count as new.
//
// Run fails if a file is there and cannot be read. Directories are made with the
// first save; while saving fails, messages are handled all the same.
//
// Every member needs a directory of its own, which must outlive the process: in a
// container a volume that replicas do not share. One value can be used
// by consumers of several groups; a second running member of a group is refused.
// Other values for the same directory, and other processes, are not noticed.
func FileOffsets(dir string) OffsetStore {
	return &fileOffsets{dir: dir, groups: make(map[string]*offsetFile)}
}

type fileOffsets struct {
	dir    string
	claims claims

	mu     sync.Mutex // guards groups
	groups map[string]*offsetFile
}

// offsetFile is the file of one group.
type offsetFile struct {
	path string

	turn   chan struct{} // one slot; who has it reads and writes files and what is below
	loaded bool
	whole  bool  // what is at path can be read
	damage error // not told yet
	table  map[rocketmq.Queue]int64
}

// errDamaged says that a file has other contents than offsets.
var errDamaged = errors.New("not a file of offsets")

// take gives the caller the file of a group, until he calls leave.
func (s *fileOffsets) take(ctx context.Context, group string) (*offsetFile, error) {
	s.mu.Lock()
	f := s.groups[group]
	if f == nil {
		f = &offsetFile{path: filepath.Join(s.dir, fileName(group), "offsets.json"), turn: make(chan struct{}, 1)}
		s.groups[group] = f
	}
	s.mu.Unlock()
	select {
	case f.turn <- struct{}{}:
		return f, nil
	default: // a context that has ended does not matter to one who need not wait
	}
	select {
	case f.turn <- struct{}{}:
		return f, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("%s: another call does not return: %w", f.path, context.Cause(ctx))
	}
}

func (f *offsetFile) leave() { <-f.turn }

// acquire reads the file, so that one that cannot be read is known at once. When
// the member ends, it is forgotten: the next one sees what somebody has changed.
func (s *fileOffsets) acquire(ctx context.Context, group string) (func(), error) {
	if s.dir == "" {
		return nil, fmt.Errorf("%w: FileOffsets needs a directory", rocketmq.ErrInvalidOption)
	}
	release, err := s.claims.claim(group)
	if err != nil {
		return nil, err
	}
	f, err := s.take(ctx, group)
	if err == nil {
		err = f.read()
		f.leave()
	}
	if err != nil {
		release()
		return nil, fmt.Errorf("stored offsets: %w", err)
	}
	return func() {
		f.turn <- struct{}{}
		f.loaded = false
		f.leave()
		release()
	}, nil
}

// Load implements [OffsetStore].
func (s *fileOffsets) Load(ctx context.Context, group string, queues []rocketmq.Queue) (map[rocketmq.Queue]int64, error) {
	f, err := s.take(ctx, group)
	if err != nil {
		return nil, err
	}
	defer f.leave()
	if err := f.read(); err != nil {
		return nil, err
	}
	damage := f.damage
	f.damage = nil
	return pick(f.table, queues), damage
}

// Save implements [OffsetStore].
func (s *fileOffsets) Save(ctx context.Context, group string, offsets map[rocketmq.Queue]int64) error {
	f, err := s.take(ctx, group)
	if err != nil {
		return err
	}
	defer f.leave()
	if err := f.read(); err != nil {
		return err
	}
	maps.Copy(f.table, offsets)
	return f.write()
}

// read fills the table, once. An error means that there is something nobody could
// look at.
func (f *offsetFile) read() error {
	if f.loaded {
		return nil
	}
	table, err := readOffsets(f.path)
	if err == nil {
		f.loaded, f.whole, f.table, f.damage = true, true, table, nil
		return nil
	}
	missing := errors.Is(err, fs.ErrNotExist)
	if !missing && !errors.Is(err, errDamaged) {
		return err
	}
	table, bakErr := readOffsets(f.path + ".bak")
	var damage error
	switch noBackup := errors.Is(bakErr, fs.ErrNotExist); {
	case bakErr == nil:
		damage = fmt.Errorf("%w: %w; going on with %s.bak, which is older", ErrOffsetsDamaged, err, f.path)
	case missing && noBackup:
		table = make(map[rocketmq.Queue]int64)
	case noBackup:
		damage = fmt.Errorf("%w: %w; there is no backup yet", ErrOffsetsDamaged, err)
	case errors.Is(bakErr, errDamaged):
		damage = fmt.Errorf("%w: %w; the backup is of no use either: %w", ErrOffsetsDamaged, err, bakErr)
	default:
		return bakErr
	}
	if table == nil {
		table = make(map[rocketmq.Queue]int64)
	}
	f.loaded, f.whole, f.table, f.damage = true, false, table, damage
	return nil
}

// write replaces the file. At any moment one of the two names has a whole one.
func (f *offsetFile) write() error {
	if err := os.MkdirAll(filepath.Dir(f.path), 0o755); err != nil {
		return err
	}
	t := wire.OffsetTable{Offsets: make(map[wire.MessageQueue]int64, len(f.table))}
	for q, off := range f.table {
		t.Offsets[wire.MessageQueue{Topic: q.Topic, Broker: q.Broker, QueueID: int32(q.ID)}] = off
	}
	tmp := f.path + ".tmp"
	if err := writeSynced(tmp, append(t.AppendJSON(nil), '\n')); err != nil {
		return err
	}
	// A damaged file must not take the place of a good backup.
	aside := f.path + ".bak"
	if !f.whole {
		aside = f.path + ".damaged"
	}
	if err := os.Rename(f.path, aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f.whole = false
	if err := os.Rename(tmp, f.path); err != nil {
		return err
	}
	f.whole = true
	syncDir(filepath.Dir(f.path))
	return nil
}

func writeSynced(path string, data []byte) error {
	h, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = h.Write(data)
	if err == nil {
		err = h.Sync()
	}
	return errors.Join(err, h.Close())
}

// syncDir makes renames durable. Some systems cannot do that; then a power loss
// may bring back the names as they were, which are good, too.
func syncDir(dir string) {
	h, err := os.Open(dir)
	if err != nil {
		return
	}
	_ = h.Sync()
	_ = h.Close()
}

// readOffsets reads a file. An error that is not errDamaged is one of the system.
func readOffsets(path string) (map[rocketmq.Queue]int64, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	table, err := parseOffsets(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return table, nil
}

// parseOffsets takes what Java's clients and this one write.
func parseOffsets(data []byte) (map[rocketmq.Queue]int64, error) {
	t, err := wire.DecodeOffsetTable(data)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errDamaged, err)
	}
	if !bytes.Contains(data, []byte(`"offsetTable"`)) {
		return nil, fmt.Errorf("%w: offsetTable is missing", errDamaged)
	}
	table := make(map[rocketmq.Queue]int64, len(t.Offsets))
	for q, off := range t.Offsets {
		if off < 0 || q.Topic == "" || q.Broker == "" || q.QueueID < 0 {
			return nil, fmt.Errorf("%w: offset %d of queue %s/%s/%d", errDamaged, off, q.Topic, q.Broker, q.QueueID)
		}
		table[rocketmq.Queue{Topic: q.Topic, Broker: q.Broker, ID: int(q.QueueID)}] = off
	}
	return table, nil
}

// fileName makes a group a name that every file system takes, and no path.
func fileName(group string) string {
	var b strings.Builder
	for _, c := range []byte(group) {
		if c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c == '-' || c == '_' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
