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

// entry is one queue of one group. A pending reset hides the committed offset
// until the group's next pull has been told.
type entry struct {
	offset int64
	pulled int64 // where the last pull began to read; 0 before the first
	reset  int64
	has    uint8
}

const (
	hasOffset uint8 = 1 << iota
	hasReset
)

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
	if e.has&hasReset != 0 {
		return false
	}
	if e.has&hasOffset != 0 && e.offset == offset {
		return true
	}
	e.offset, e.has = offset, e.has|hasOffset
	q[queueID] = e
	t.changed = true
	if t.commits++; t.commits%versionStep == 0 {
		t.version = t.version.Next(t.clock.Now().UnixMilli())
	}
	return true
}

// Offset is the committed offset of a queue, or the target of a pending reset.
func (t *Table) Offset(group, topic []byte, queueID int32) (int64, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.queues(group, topic)[queueID]
	if e.has&hasReset != 0 {
		return e.reset, true
	}
	return e.offset, e.has&hasOffset != 0
}

// BeginPull notes where a group reads, for the statistics of lag. If a reset of
// the queue is pending it ends it and returns its target: the pull tells the
// client.
func (t *Table) BeginPull(group, topic []byte, queueID int32, offset int64) (target int64, reset bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	q := t.edit(group, topic)
	e := q[queueID]
	if e.has&hasReset != 0 {
		e.has &^= hasReset
		q[queueID] = e
		return e.reset, true
	}
	if e.pulled != offset {
		e.pulled = offset
		q[queueID] = e
	}
	return 0, false
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
	e.offset, e.reset, e.has = offset, offset, hasOffset|hasReset
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
		if e.has&hasOffset != 0 {
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
				if e.has&hasOffset != 0 {
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
			q[id] = entry{offset: off, has: hasOffset}
		}
	}
	t.version = s.Version
	return nil
}
