// Package groups is the broker's table of consumer groups and their settings,
// SubscriptionGroupManager of Apache's broker.
package groups

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// File is the name of the table's file in the config folder.
const File = "subscriptionGroup.json"

// predefined are the groups every broker knows from its start.
var predefined = [...]string{
	"TOOLS_CONSUMER", "FILTERSRV_CONSUMER", "SELF_TEST_C_GROUP", "CID_ONS-HTTP-PROXY", "CID_ONSAPI_PULL",
	"CID_ONSAPI_PERMISSION", "CID_ONSAPI_OWNER", "CID_RMQ_SYS_TRANS",
}

// systemPrefix marks groups that exist as soon as they are named.
const systemPrefix = "CID_RMQ_SYS_"

// Table is all consumer groups of a broker. All methods are safe for
// concurrent use and do no I/O. The groups it hands out are immutable.
type Table struct {
	clock      clock.Clock
	autoCreate bool

	mu        sync.RWMutex // guards all below; nothing is called under it
	groups    map[string]*wire.SubscriptionGroup
	forbidden map[string]map[string]int32
	version   wire.DataVersion
}

// New returns a table of the predefined groups. With autoCreate a group exists
// from the moment it is asked for.
func New(c clock.Clock, autoCreate bool) *Table {
	t := &Table{
		clock: c, autoCreate: autoCreate, groups: map[string]*wire.SubscriptionGroup{},
		version: wire.DataVersion{Timestamp: c.Now().UnixMilli()},
	}
	t.addPredefined()
	return t
}

func (t *Table) addPredefined() {
	for _, name := range predefined {
		if t.groups[name] == nil {
			g := wire.NewSubscriptionGroup(name)
			t.groups[name] = &g
		}
	}
}

// Get returns a group. If it is missing and may be created on the way, it is:
// created tells so. The group is nil if it is missing for good. For a group
// that exists it does not allocate.
func (t *Table) Get(name []byte) (g *wire.SubscriptionGroup, created bool) {
	t.mu.RLock()
	g = t.groups[string(name)]
	t.mu.RUnlock()
	if g != nil {
		return g, false
	}
	return t.create(string(name))
}

// Lookup returns a group if it exists, nil otherwise.
func (t *Table) Lookup(name string) *wire.SubscriptionGroup {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.groups[name]
}

func (t *Table) create(name string) (*wire.SubscriptionGroup, bool) {
	if !t.autoCreate && !strings.HasPrefix(name, systemPrefix) || wire.ValidateGroup(name) != nil {
		return nil, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if g := t.groups[name]; g != nil {
		return g, false
	}
	g := wire.NewSubscriptionGroup(name)
	t.groups[name] = &g
	t.version = t.version.Next(t.clock.Now().UnixMilli())
	return &g, true
}

// Put creates or replaces a group.
func (t *Table) Put(g wire.SubscriptionGroup) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.groups[g.Name] = &g
	t.version = t.version.Next(t.clock.Now().UnixMilli())
}

// Delete removes a group and reports whether it was there.
func (t *Table) Delete(name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.groups[name] == nil {
		return false
	}
	delete(t.groups, name)
	delete(t.forbidden, name)
	t.version = t.version.Next(t.clock.Now().UnixMilli())
	return true
}

// Names are all groups, sorted.
func (t *Table) Names() []string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return slices.Sorted(maps.Keys(t.groups))
}

// Snapshot is the whole table as one state.
func (t *Table) Snapshot() wire.SubscriptionGroups {
	t.mu.RLock()
	defer t.mu.RUnlock()
	s := wire.SubscriptionGroups{
		Version: t.version, Groups: make(map[string]wire.SubscriptionGroup, len(t.groups)),
		Forbidden: make(map[string]map[string]int32, len(t.forbidden)),
	}
	for name, g := range t.groups {
		s.Groups[name] = *g
	}
	for name, f := range t.forbidden {
		s.Forbidden[name] = maps.Clone(f)
	}
	return s
}

// Encode is the content of the table's file and of code 201's answer, compact.
func (t *Table) Encode() []byte {
	s := t.Snapshot()
	return s.AppendJSON(nil)
}

// Decode replaces the table by the content of a file. Predefined groups that
// are missing from it are added.
func (t *Table) Decode(data []byte) error {
	s, err := wire.DecodeSubscriptionGroups(data)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.groups = make(map[string]*wire.SubscriptionGroup, len(s.Groups))
	for name, g := range s.Groups {
		g.Name = name
		t.groups[name] = &g
	}
	t.forbidden, t.version = s.Forbidden, s.Version
	t.addPredefined()
	return nil
}
