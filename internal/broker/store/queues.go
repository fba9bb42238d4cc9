package store

import (
	"cmp"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"github.com/gorocketmq/rocketmq/internal/broker/store/cq"
	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
)

// queue is one (topic, queue id).
type queue struct {
	topic string
	id    int32
	cq    *cq.Queue // written by the dispatcher alone

	// since is where the log ended when a topic of the same name was deleted:
	// records before it are not this queue's.
	since int64

	built bool // has got a unit while queues are built anew; the dispatcher's own

	next int64 // queue offset of the next record; under the append lock
	dead bool  // the topic was deleted; under the append lock
}

// queueKey finds a queue. A lookup with queueKey{string(b), id} does not
// allocate.
type queueKey struct {
	topic string
	id    int32
}

// queueTable has all queues of a store.
type queueTable struct {
	fs   mfile.FS
	dir  string
	size int64

	building bool // queues are built anew, see Store.rebuildQueues
	strict   bool // dispatching fails when units are missing

	mu     sync.RWMutex // guards the maps; taken after the append lock
	queues map[queueKey]*queue
	// deleting has the topics whose queues are gone from the map while the
	// dispatcher has not passed the log position where that happened.
	deleting map[string]int64
}

func newQueueTable(fsys mfile.FS, dir string, size int64) *queueTable {
	return &queueTable{fs: fsys, dir: dir, size: size, queues: map[queueKey]*queue{}, deleting: map[string]int64{}}
}

// load opens every queue there is on disk. Directories that are not named
// like a queue are left alone.
func (t *queueTable) load() error {
	topics, err := t.fs.ReadDir(t.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, topic := range topics {
		if !topic.Dir {
			continue
		}
		ids, err := t.fs.ReadDir(filepath.Join(t.dir, topic.Name))
		if err != nil {
			return err
		}
		for _, e := range ids {
			id, err := strconv.ParseInt(e.Name, 10, 32)
			if err != nil || id < 0 || !e.Dir {
				continue
			}
			c, err := cq.Open(t.fs, filepath.Join(t.dir, topic.Name, e.Name), t.size)
			if err != nil {
				return err
			}
			t.queues[queueKey{topic.Name, int32(id)}] = &queue{topic: topic.Name, id: int32(id), cq: c}
		}
	}
	return nil
}

// find returns a queue, nil if there is none.
func (t *queueTable) find(topic string, id int32) *queue {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.queues[queueKey{topic, id}]
}

// findBytes is find for a topic that is still in a frame.
func (t *queueTable) findBytes(topic []byte, id int32) *queue {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.queues[queueKey{string(topic), id}]
}

// obtain returns the queue that a new record goes to and makes it if needed.
// It returns nil when no directory can have the topic's name.
func (t *queueTable) obtain(topic []byte, id int32) *queue {
	if q := t.findBytes(topic, id); q != nil {
		return q
	}
	if id < 0 || !fitsDirectory(topic) {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	k := queueKey{string(topic), id}
	q := t.queues[k]
	if q == nil {
		q = t.make(k, t.deleting[k.topic])
	}
	return q
}

// fitsDirectory keeps topics inside the store's directory, whatever the
// broker lets through.
func fitsDirectory(topic []byte) bool {
	for _, c := range topic {
		if c == '/' || c == '\\' || c == 0 {
			return false
		}
	}
	return len(topic) > 0 && string(topic) != "." && string(topic) != ".."
}

// dispatchTo returns the queue of the record at phy of the log and makes it
// if needed; nil when the record's topic has been deleted since, or cannot be
// one.
func (t *queueTable) dispatchTo(topic []byte, id int32, phy int64) *queue {
	q := t.findBytes(topic, id)
	if q == nil {
		t.mu.Lock()
		k := queueKey{string(topic), id}
		if q = t.queues[k]; q == nil && phy >= t.deleting[k.topic] && id >= 0 {
			q = t.make(k, 0)
		}
		t.mu.Unlock()
	}
	if q == nil || phy < q.since {
		return nil
	}
	return q
}

// make adds a queue; mu must be held.
func (t *queueTable) make(k queueKey, since int64) *queue {
	dir := filepath.Join(t.dir, k.topic, strconv.Itoa(int(k.id)))
	q := &queue{topic: k.topic, id: k.id, since: since, cq: cq.New(t.fs, dir, t.size)}
	t.queues[k] = q
	return q
}

// take removes those of a topic's queues from the table that which chooses.
// The append lock must be held and the log must end at end: whoever finds one
// of the queues dead looks again, and the dispatcher ignores their records
// before end.
func (t *queueTable) take(topic string, end int64, which func(*queue) bool) []*queue {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []*queue
	for k, q := range t.queues {
		if k.topic == topic && which(q) {
			q.dead = true
			out = append(out, q)
			delete(t.queues, k)
		}
	}
	t.deleting[topic] = end
	return out
}

// buried ends the passing over of what belongs to deleted topics, after
// recovery.
func (t *queueTable) buried() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.deleting)
}

// took ends what take began, once the dispatcher has come to end.
func (t *queueTable) took(topic string, end int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.deleting[topic] == end {
		delete(t.deleting, topic)
	}
}

// all appends the queues of all topics to dst, in no order.
func (t *queueTable) all(dst []*queue) []*queue {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, q := range t.queues {
		dst = append(dst, q)
	}
	return dst
}

// topics lists the topics that have queues, sorted.
func (t *queueTable) topics() []string {
	t.mu.RLock()
	seen := map[string]bool{}
	for k := range t.queues {
		seen[k.topic] = true
	}
	t.mu.RUnlock()
	out := make([]string, 0, len(seen))
	for topic := range seen {
		out = append(out, topic)
	}
	slices.Sort(out)
	return out
}

// ids lists the queue ids of a topic, sorted.
func (t *queueTable) ids(topic string) []int32 {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var out []int32
	for k := range t.queues {
		if k.topic == topic {
			out = append(out, k.id)
		}
	}
	slices.SortFunc(out, cmp.Compare[int32])
	return out
}

// close closes all consume queues without flushing them.
func (t *queueTable) close() error {
	var err error
	for _, q := range t.all(nil) {
		err = errors.Join(err, q.cq.Close())
	}
	return err
}

// count is the number of queues.
func (t *queueTable) count() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.queues)
}
