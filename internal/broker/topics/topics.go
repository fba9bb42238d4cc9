// Package topics is the broker's table of topics: what exists, with how many
// queues, who may do what with it. It is TopicConfigManager of Apache's
// broker without the parts that talk to others.
package topics

import (
	"maps"
	"slices"
	"sync"

	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// File is the name of the table's file in the config folder.
const File = "topics.json"

// Topic is the configuration of one topic. It is immutable: a change makes a
// new one, so a pointer to it may be used without a lock.
type Topic struct {
	wire.TopicConfig
	// System is true for topics that belong to the broker and that tools may
	// neither change nor delete.
	System bool
	// NoSend is true for topics that clients may not send to.
	NoSend bool
	// Retry is true for the retry topic of a consumer group.
	Retry bool
}

// Readable tells whether consumers may pull.
func (t *Topic) Readable() bool { return t.Perm&wire.PermRead != 0 }

// Writable tells whether clients are offered the topic's queues for sending.
func (t *Topic) Writable() bool { return t.Perm&wire.PermWrite != 0 }

// Queues is how many queues the topic has at most, for reading or writing.
func (t *Topic) Queues() int32 { return max(t.ReadQueues, t.WriteQueues) }

// Table is all topics of a broker. All methods are safe for concurrent use
// and do no I/O: [Table.Encode] and [Table.Decode] are for whoever keeps the
// file.
type Table struct {
	clock clock.Clock

	mu      sync.RWMutex // guards all below; nothing is called under it
	topics  map[string]*Topic
	builtin map[string]bool // the broker's own: cluster and broker name
	version wire.DataVersion
}

// New returns an empty table.
func New(c clock.Clock) *Table {
	return &Table{
		clock: c, topics: map[string]*Topic{}, builtin: map[string]bool{},
		version: wire.DataVersion{Timestamp: c.Now().UnixMilli()},
	}
}

// Get returns a topic, nil if there is none. It does not allocate.
func (t *Table) Get(name []byte) *Topic {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.topics[string(name)]
}

// Lookup is [Table.Get] for a string.
func (t *Table) Lookup(name string) *Topic {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.topics[name]
}

// Put creates or replaces a topic and reports whether that changed anything.
// On a change the data version counts up.
func (t *Table) Put(cfg wire.TopicConfig) (*Topic, bool) {
	if cfg.FilterType == "" {
		cfg.FilterType = "SINGLE_TAG"
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	old := t.topics[cfg.Name]
	if old != nil && equal(&old.TopicConfig, &cfg) {
		return old, false
	}
	n := t.put(cfg)
	t.version = t.version.Next(t.clock.Now().UnixMilli())
	return n, true
}

// Create adds a topic if it is missing. It returns the topic that is there
// afterwards and whether this call added it.
func (t *Table) Create(cfg wire.TopicConfig) (*Topic, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if old := t.topics[cfg.Name]; old != nil {
		return old, false
	}
	if cfg.FilterType == "" {
		cfg.FilterType = "SINGLE_TAG"
	}
	n := t.put(cfg)
	t.version = t.version.Next(t.clock.Now().UnixMilli())
	return n, true
}

func (t *Table) put(cfg wire.TopicConfig) *Topic {
	n := &Topic{
		TopicConfig: cfg,
		System:      t.builtin[cfg.Name] || wire.IsSystemTopic(cfg.Name),
		NoSend:      !wire.MaySendTo(cfg.Name),
		Retry:       wire.IsRetryTopic(cfg.Name),
	}
	t.topics[cfg.Name] = n
	return n
}

// Delete removes a topic and reports whether it was there.
func (t *Table) Delete(name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.topics[name] == nil {
		return false
	}
	delete(t.topics, name)
	t.version = t.version.Next(t.clock.Now().UnixMilli())
	return true
}

// IsSystem tells whether a name is one of the broker's own, whether or not
// the topic exists.
func (t *Table) IsSystem(name string) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.builtin[name] || wire.IsSystemTopic(name)
}

// SystemNames are the names of the broker's own topics, sorted: those that
// exist and those that are reserved for later.
func (t *Table) SystemNames() []string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	names := []string{wire.TopicDefault, "RMQ_SYS_TRACE_TOPIC", "TRANS_CHECK_MAX_TIME_TOPIC", "CHECKPOINT_TOPIC"}
	for name, topic := range t.topics {
		if topic.System && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Names are all topics, sorted.
func (t *Table) Names() []string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return slices.Sorted(maps.Keys(t.topics))
}

// Version is the present data version.
func (t *Table) Version() wire.DataVersion {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.version
}

// Snapshot is the whole table as one state.
func (t *Table) Snapshot() wire.TopicConfigs {
	t.mu.RLock()
	defer t.mu.RUnlock()
	s := wire.TopicConfigs{Version: t.version, Topics: make(map[string]wire.TopicConfig, len(t.topics))}
	for name, topic := range t.topics {
		s.Topics[name] = topic.TopicConfig
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
	s, err := wire.DecodeTopicConfigs(data)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.topics = make(map[string]*Topic, len(s.Topics))
	for name, cfg := range s.Topics {
		cfg.Name = name
		t.put(cfg)
	}
	t.version = s.Version
	return nil
}

func equal(a, b *wire.TopicConfig) bool {
	return a.Name == b.Name && a.ReadQueues == b.ReadQueues && a.WriteQueues == b.WriteQueues && a.Perm == b.Perm &&
		a.FilterType == b.FilterType && a.SysFlag == b.SysFlag && a.Order == b.Order && maps.Equal(a.Attributes, b.Attributes)
}
