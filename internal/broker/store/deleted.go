package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"sync"

	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
)

// deletedFile says which topics were deleted when the log ended where. Records
// of such a topic before that are still in the log; without the file they
// would get queues again when they are dispatched after a restart. Apache has
// no such file and does not look at it.
const deletedFile = "deletedTopics"

// graves are the topics in the deleted file.
type graves struct {
	fs  mfile.FS
	dir string

	mu   sync.Mutex // guards m
	m    map[string]int64
	turn sync.Mutex // held while the file is written: it is for that alone
}

// deletedMagic is the file's kind and version.
const deletedMagic = "GORMQDT1"

func openGraves(fsys mfile.FS, dir string) (*graves, error) {
	g := &graves{fs: fsys, dir: dir, m: map[string]int64{}}
	path := filepath.Join(dir, deletedFile)
	b, err := fsys.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return g, nil
	}
	if err != nil {
		return nil, err
	}
	if !g.decode(b) {
		return nil, &mfile.FormatError{Path: path, Reason: "damaged; without it the store can be opened, but topics that were deleted may come back"}
	}
	return g, nil
}

// decode reads: magic, per topic log position 8, length 2 and name, and at the
// end a CRC-32C of all that.
func (g *graves) decode(b []byte) bool {
	n := len(b) - 4
	if n < len(deletedMagic) || string(b[:len(deletedMagic)]) != deletedMagic ||
		binary.BigEndian.Uint32(b[n:]) != crc32.Checksum(b[:n], crc32.MakeTable(crc32.Castagnoli)) {
		return false
	}
	for b = b[len(deletedMagic):n]; len(b) >= 10; {
		end := 10 + int(binary.BigEndian.Uint16(b[8:]))
		if len(b) < end {
			return false
		}
		g.m[string(b[10:end])] = int64(binary.BigEndian.Uint64(b))
		b = b[end:]
	}
	return len(b) == 0
}

// add notes that a topic was deleted when the log ended at phy, and makes it
// durable. begin is where the log begins: what was deleted before is forgotten.
func (g *graves) add(topic string, phy, begin int64) error {
	g.turn.Lock()
	defer g.turn.Unlock()
	g.mu.Lock()
	maps.DeleteFunc(g.m, func(_ string, at int64) bool { return at <= begin })
	g.m[topic] = phy
	b := g.encode()
	g.mu.Unlock()
	return g.write(b)
}

// cut adapts to a log that has lost its end: what comes there now is new. It
// is called before anything is appended.
func (g *graves) cut(end int64) error {
	changed := false
	for topic, phy := range g.m {
		if phy > end {
			g.m[topic], changed = end, true
		}
	}
	if !changed {
		return nil
	}
	return g.write(g.encode())
}

func (g *graves) write(b []byte) error {
	path := filepath.Join(g.dir, deletedFile)
	if err := g.fs.WriteFile(path+".tmp", b); err != nil {
		return err
	}
	if err := g.fs.Rename(path+".tmp", path); err != nil {
		return err
	}
	return g.fs.SyncDir(g.dir)
}

func (g *graves) encode() []byte {
	b := []byte(deletedMagic)
	for _, topic := range slices.Sorted(maps.Keys(g.m)) {
		b = binary.BigEndian.AppendUint64(b, uint64(g.m[topic]))
		b = binary.BigEndian.AppendUint16(b, uint16(len(topic)))
		b = append(b, topic...)
	}
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
}

// bury makes recovery pass over what belongs to deleted topics. Queues that
// still have, or have again, units from before the deletion are removed: the
// process or the machine died before that was done.
func (s *Store) bury() error {
	t := s.queues
	for topic, phy := range s.graves.m {
		t.deleting[topic] = phy
		for _, id := range t.ids(topic) {
			k := queueKey{topic, id}
			q := t.queues[k]
			if first, ok := q.cq.FirstPhy(); ok && first < phy {
				if err := q.cq.Destroy(); err != nil {
					return fmt.Errorf("remove queue of deleted topic: %w", err)
				}
				delete(t.queues, k)
				continue
			}
			q.since = phy
		}
	}
	return nil
}
