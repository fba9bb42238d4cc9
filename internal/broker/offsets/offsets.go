// Package offsets is the broker's table of consumer offsets: how far each
// group has come in each queue. It is ConsumerOffsetManager of Apache's
// broker, with the offsets that a reset left pending.
package offsets

import (
	"slices"
	"strings"
	"sync"

	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// File is the name of the table's file in the config folder.
const File = "consumerOffset.json"

// versionStep is after how many commits the data version counts up.
const versionStep = 500

// Table is the committed offsets of all groups. All methods are safe for
// concurrent use and do no I/O.
type Table struct {
	clock clock.Clock

	mu      sync.Mutex // guards all below; nothing is called under it
	groups  map[string]map[string]map[int32]entry
	version wire.DataVersion
	commits int
	changed bool
}

// entry is one queue of one group.
type entry struct {
	offset int64
	pulled int64  // where the last pull began to read; 0 before the first
	reset  *reset // nil: none is pending
	stored bool   // offset is one that was committed or reset
}

// reset is one that its group does not know of for sure. Commits are ignored
// meanwhile, because they belong to the time before.
type reset struct {
	target int64
	told   any // the connection over which a pull was told last, nil before
}

// New returns an empty table.
func New(c clock.Clock) *Table {
	return &Table{
		clock: c, groups: map[string]map[string]map[int32]entry{},
		version: wire.DataVersion{Timestamp: c.Now().UnixMilli()},
	}
}

// queues returns a group's queues of a topic, nil if there are none.
func (t *Table) queues(group, topic []byte) map[int32]entry {
	return t.groups[string(group)][string(topic)]
}

// edit is [Table.queues] that creates what is missing.
func (t *Table) edit(group, topic []byte) map[int32]entry {
	if q := t.queues(group, topic); q != nil {
		return q
	}
	byTopic := t.groups[string(group)]
	if byTopic == nil {
		byTopic = map[string]map[int32]entry{}
		t.groups[string(group)] = byTopic
	}
	q := map[int32]entry{}
	byTopic[string(topic)] = q
	return q
}

// Commit stores an offset, also one lower than before. It does nothing and
// reports false while a reset of the queue is pending: what the group reports
// then still belongs to the time before the reset. It does not allocate for a
// queue that has an offset.
func (t *Table) Commit(group, topic []byte, queueID int32, offset int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	q := t.edit(group, topic)
	e := q[queueID]
	if e.reset != nil {
		return false
	}
	if e.stored && e.offset == offset {
		return true
	}
	e.offset, e.stored = offset, true
	q[queueID] = e
	t.changed = true
	if t.commits++; t.commits%versionStep == 0 {
		t.version = t.version.Next(t.clock.Now().UnixMilli())
	}
	return true
}

// Offset is the committed offset of a queue, or the target of a reset.
func (t *Table) Offset(group, topic []byte, queueID int32) (int64, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.queues(group, topic)[queueID]
	return e.offset, e.stored
}

// Pull is a pull that is about to read.
type Pull struct {
	Group, Topic []byte
	QueueID      int32
	Offset       int64
	Conn         any  // the connection it came over; compared with others
	Held         bool // it was held until now
}

// BeginPull notes where a group reads, for the statistics of lag. If a reset of
// the queue is pending it returns its target: the pull tells the client. It is
// over with the next pull over the same connection, because that was sent by a
// client that has had the answer, or with a pull from the target. An answer that
// is lost with its connection, or belongs to a pull that its client has given
// up, is given again.
func (t *Table) BeginPull(p *Pull) (target int64, reset bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	q := t.edit(p.Group, p.Topic)
	e := q[p.QueueID]
	if r := e.reset; r != nil {
		if r.told == nil || p.Held || r.told != p.Conn && r.target != p.Offset {
			r.told = p.Conn
			return r.target, true
		}
		e.reset = nil
		q[p.QueueID] = e
	}
	if e.pulled != p.Offset {
		e.pulled = p.Offset
		q[p.QueueID] = e
	}
	return 0, false
}

// BeginPop is the committed offset from which the broker itself is about to
// read for a group, and notes it for the statistics of lag. A reset of the queue
// that is pending is over with it, since nobody needs to be told. It does not
// allocate for a queue that has an offset.
func (t *Table) BeginPop(group, topic []byte, queueID int32) (offset int64, ok, reset bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	q := t.queues(group, topic)
	e, ok := q[queueID]
	if !ok || !e.stored {
		return 0, false, false
	}
	reset = e.reset != nil
	if reset || e.pulled != e.offset {
		e.pulled, e.reset = e.offset, nil
		q[queueID] = e
	}
	return e.offset, true, reset
}

// PullOffset is what [Table.BeginPull] noted last, 0 if nothing.
func (t *Table) PullOffset(group, topic []byte, queueID int32) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.queues(group, topic)[queueID].pulled
}

// Reset makes the group's next pull of a queue continue at offset.
func (t *Table) Reset(group, topic []byte, queueID int32, offset int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	q := t.edit(group, topic)
	e := q[queueID]
	e.offset, e.stored, e.reset = offset, true, &reset{target: offset}
	q[queueID] = e
	t.changed = true
}

// Topics are the topics a group has offsets for, sorted.
func (t *Table) Topics(group string) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var names []string
	for topic, queues := range t.groups[group] {
		if committed(queues) {
			names = append(names, topic)
		}
	}
	slices.Sort(names)
	return names
}

// Groups are the groups that have offsets for a topic, sorted.
func (t *Table) Groups(topic string) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var names []string
	for group, byTopic := range t.groups {
		if committed(byTopic[topic]) {
			names = append(names, group)
		}
	}
	slices.Sort(names)
	return names
}

func committed(queues map[int32]entry) bool {
	for _, e := range queues {
		if e.stored {
			return true
		}
	}
	return false
}

// RemoveGroup forgets a group's offsets.
func (t *Table) RemoveGroup(group string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.groups[group]; ok {
		delete(t.groups, group)
		t.changed = true
	}
}

// RemoveTopic forgets all groups' offsets of a topic.
func (t *Table) RemoveTopic(topic string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, byTopic := range t.groups {
		if _, ok := byTopic[topic]; ok {
			delete(byTopic, topic)
			t.changed = true
		}
	}
}

// TakeChanged tells whether anything changed since it was last called.
func (t *Table) TakeChanged() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.changed
	t.changed = false
	return c
}

// NotSaved takes a TakeChanged back: what it told about is not on the disk.
func (t *Table) NotSaved() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.changed = true
}

// Snapshot is the committed offsets as one state.
func (t *Table) Snapshot() wire.ConsumerOffsets {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := wire.ConsumerOffsets{Version: t.version, Offsets: map[string]map[int32]int64{}}
	for group, byTopic := range t.groups {
		for topic, queues := range byTopic {
			m := map[int32]int64{}
			for id, e := range queues {
				if e.stored {
					m[id] = e.offset
				}
			}
			if len(m) > 0 {
				s.Offsets[topic+"@"+group] = m
			}
		}
	}
	return s
}

// Encode is the content of the table's file, compact.
func (t *Table) Encode() []byte {
	s := t.Snapshot()
	return s.AppendJSON(nil)
}

// Decode replaces the table by the content of a file.
func (t *Table) Decode(data []byte) error {
	s, err := wire.DecodeConsumerOffsets(data)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.groups = map[string]map[string]map[int32]entry{}
	for key, offsets := range s.Offsets {
		topic, group, ok := strings.Cut(key, "@")
		if !ok {
			continue
		}
		q := t.edit([]byte(group), []byte(topic))
		for id, off := range offsets {
			q[id] = entry{offset: off, stored: true}
		}
	}
	t.version = s.Version
	return nil
}
