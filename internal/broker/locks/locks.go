// Package locks is who may consume which queue in order: at most one client
// of a group at a time. It is RebalanceLockManager of Apache's broker. Locks
// are not persisted; a restart frees them all.
package locks

import (
	"sync"
	"time"

	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Lifetime is how long a lock lasts after it was taken or renewed.
const Lifetime = 60 * time.Second

// Table is all locks of a broker. All methods are safe for concurrent use.
type Table struct {
	clock clock.Clock

	mu     sync.Mutex // guards groups
	groups map[string]map[wire.MessageQueue]lock
}

type lock struct {
	client string
	at     time.Time
}

// New returns a table without locks.
func New(c clock.Clock) *Table {
	return &Table{clock: c, groups: map[string]map[wire.MessageQueue]lock{}}
}

// Lock takes or renews the locks of queues for a client and returns those it
// holds now.
func (t *Table) Lock(group, client string, queues []wire.MessageQueue) []wire.MessageQueue {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock.Now()
	held := t.groups[group]
	if held == nil {
		held = map[wire.MessageQueue]lock{}
		t.groups[group] = held
	}
	ok := make([]wire.MessageQueue, 0, len(queues))
	for _, q := range queues {
		if l, taken := held[q]; taken && l.client != client && now.Sub(l.at) <= Lifetime {
			continue
		}
		held[q] = lock{client, now}
		ok = append(ok, q)
	}
	return ok
}

// Unlock frees the queues that the client holds.
func (t *Table) Unlock(group, client string, queues []wire.MessageQueue) {
	t.mu.Lock()
	defer t.mu.Unlock()
	held := t.groups[group]
	for _, q := range queues {
		if held[q].client == client {
			delete(held, q)
		}
	}
	if len(held) == 0 {
		delete(t.groups, group)
	}
}

// Locked tells whether any client of a group holds a lock that lasts.
func (t *Table) Locked(group string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock.Now()
	for _, l := range t.groups[group] {
		if now.Sub(l.at) <= Lifetime {
			return true
		}
	}
	return false
}
