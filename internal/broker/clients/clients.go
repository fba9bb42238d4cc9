// Package clients knows who is connected to the broker: which connection
// speaks for which client in which consumer and producer groups, and what the
// groups subscribe to. It is ConsumerManager and ProducerManager of Apache's
// broker.
package clients

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/filter"
	"github.com/gorocketmq/rocketmq/internal/filter/sql92"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Conn is what this package needs of a connection. Values are compared: use
// pointers.
type Conn interface {
	Remote() string // the peer's address
}

// Client is one member of one group. It is a copy; the manager does not
// change it.
type Client struct {
	ID       string
	Conn     Conn
	Language wire.Language
	Version  int32
	Updated  time.Time // last heartbeat
}

// Subscription is one topic of a consumer group. It is immutable.
type Subscription struct {
	wire.Subscription
	Filter filter.Tags // of type TAG

	// Of all other types: the expression of the newest version that compiles,
	// nil if none does, and what is wrong with the newest one.
	SQL        *sql92.Expr
	SQLVersion int64
	SQLFault   error
}

// Group is what a consumer group's members said of it last. It is a copy.
type Group struct {
	Name, ConsumeType, Model, From string
	Subscriptions                  []*Subscription // sorted by topic
	Members                        []Client        // sorted by id
}

// Broadcasting tells whether every member is to get every message.
func (g *Group) Broadcasting() bool { return g.Model == "BROADCASTING" }

// Manager is all clients of a broker. All methods are safe for concurrent use
// and do no I/O; what must be told to clients is returned.
type Manager struct {
	clock       clock.Clock
	expressions sql92.Cache

	mu        sync.RWMutex // guards all below; nothing is called under it
	consumers map[string]*consumers
	producers map[string]map[Conn]*Client
	conns     map[Conn]*membership
	senders   map[string][]Conn // by client id, those with a producer; the one that came last is the last
}

type consumers struct {
	typ, model, from string
	subs             map[string]*Subscription
	members          map[Conn]*Client
}

// membership is what a connection belongs to, so that its end is cheap.
type membership struct {
	consumers, producers []string
	sender               string // client id of its producers
}

// New returns an empty manager.
func New(c clock.Clock) *Manager {
	return &Manager{
		clock: c, consumers: map[string]*consumers{}, producers: map[string]map[Conn]*Client{}, conns: map[Conn]*membership{},
		senders: map[string][]Conn{},
	}
}

// Change tells which connections must hear that the membership or the
// subscriptions of a group are not what they were.
type Change struct {
	Group  string
	Notify []Conn
}

// Producer notes a heartbeat of a producer.
func (m *Manager) Producer(group string, c Client) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c.Updated = m.clock.Now()
	members := m.producers[group]
	if members == nil {
		members = map[Conn]*Client{}
		m.producers[group] = members
	}
	members[c.Conn] = &c
	ms := m.membership(c.Conn)
	ms.producers = add(ms.producers, group)
	if ms.sender != c.ID {
		m.dropSender(c.Conn, ms)
		ms.sender = c.ID
		m.senders[c.ID] = append(m.senders[c.ID], c.Conn)
	}
}

// dropSender forgets that a connection has producers.
func (m *Manager) dropSender(c Conn, ms *membership) {
	list := m.senders[ms.sender]
	if i := slices.Index(list, c); i >= 0 {
		if list = slices.Delete(list, i, i+1); len(list) == 0 {
			delete(m.senders, ms.sender)
		} else {
			m.senders[ms.sender] = list
		}
	}
	ms.sender = ""
}

// Consumer notes a heartbeat of a consumer. A subscription replaces the one
// known only if its version is larger; with keepSubs, for heartbeats that left
// the subscriptions out, they stay as they are, otherwise topics that are not
// in this heartbeat are dropped for the whole group. changed tells whether
// anything is new; it is up to the caller to notify.
func (m *Manager) Consumer(d wire.ConsumerData, c Client, keepSubs bool) (ch Change, changed bool) {
	subs := m.compile(d.Subscriptions)
	m.mu.Lock()
	defer m.mu.Unlock()
	c.Updated = m.clock.Now()
	g := m.consumers[d.Group]
	if g == nil {
		g = &consumers{subs: map[string]*Subscription{}, members: map[Conn]*Client{}}
		m.consumers[d.Group] = g
	}
	g.typ, g.model, g.from = d.ConsumeType, d.Model, d.From
	if old := g.members[c.Conn]; old == nil || old.ID != c.ID {
		changed = true
	}
	g.members[c.Conn] = &c
	ms := m.membership(c.Conn)
	ms.consumers = add(ms.consumers, d.Group)
	if !keepSubs && g.update(subs) {
		changed = true
	}
	if changed {
		ch = Change{d.Group, g.conns()}
	}
	return ch, changed
}

// compile makes the filters of subscriptions, from the cache for all heartbeats
// but the first.
func (m *Manager) compile(list []wire.Subscription) []*Subscription {
	subs := make([]*Subscription, len(list))
	for i, w := range list {
		s := &Subscription{Subscription: w}
		switch w.ExprType {
		case "", filter.TypeTag:
			s.Filter = filter.FromCodes(w.Expr, w.Tags, w.Codes)
		case filter.TypeSQL:
			s.SQL, s.SQLFault = m.expressions.Compile([]byte(w.Expr))
		default:
			s.SQLFault = fmt.Errorf("unknown expression type %s", w.ExprType)
		}
		if s.SQL != nil {
			s.SQLVersion = w.Version
		}
		subs[i] = s
	}
	return subs
}

// update applies a full list of subscriptions and reports a change. As in
// Apache's broker a newer version of the same expression is no change.
func (g *consumers) update(subs []*Subscription) bool {
	changed := false
	seen := make(map[string]bool, len(subs))
	for _, s := range subs {
		seen[s.Topic] = true
		old := g.subs[s.Topic]
		if old != nil && s.Version <= old.Version {
			continue
		}
		if old == nil {
			changed = true
		} else if s.SQLFault != nil {
			s.SQL, s.SQLVersion = old.SQL, old.SQLVersion
		}
		g.subs[s.Topic] = s
	}
	for topic := range g.subs {
		if !seen[topic] {
			delete(g.subs, topic)
			changed = true
		}
	}
	return changed
}

func (g *consumers) conns() []Conn {
	out := make([]Conn, 0, len(g.members))
	for c := range g.members {
		out = append(out, c)
	}
	return out
}

func (m *Manager) membership(c Conn) *membership {
	ms := m.conns[c]
	if ms == nil {
		ms = &membership{}
		m.conns[c] = ms
	}
	return ms
}

// RemoveConsumer takes a client out of a group.
func (m *Manager) RemoveConsumer(group string, c Conn) (ch Change, removed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if ms := m.conns[c]; ms != nil {
		ms.consumers = remove(ms.consumers, group)
		m.dropMembership(c, ms)
	}
	return m.removeConsumer(group, c)
}

// RemoveProducer takes a client out of a group.
func (m *Manager) RemoveProducer(group string, c Conn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if ms := m.conns[c]; ms != nil {
		if ms.producers = remove(ms.producers, group); len(ms.producers) == 0 {
			m.dropSender(c, ms)
		}
		m.dropMembership(c, ms)
	}
	m.removeProducer(group, c)
}

func (m *Manager) dropMembership(c Conn, ms *membership) {
	if len(ms.consumers)+len(ms.producers) == 0 {
		delete(m.conns, c)
	}
}

func (m *Manager) removeConsumer(group string, c Conn) (Change, bool) {
	g := m.consumers[group]
	if g == nil || g.members[c] == nil {
		return Change{}, false
	}
	delete(g.members, c)
	if len(g.members) == 0 {
		delete(m.consumers, group)
	}
	return Change{group, g.conns()}, true
}

func (m *Manager) removeProducer(group string, c Conn) {
	members := m.producers[group]
	delete(members, c)
	if len(members) == 0 {
		delete(m.producers, group)
	}
}

// RemoveConn takes a connection out of all its groups, at its end.
func (m *Manager) RemoveConn(c Conn) []Change {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.removeConn(c)
}

func (m *Manager) removeConn(c Conn) []Change {
	ms := m.conns[c]
	if ms == nil {
		return nil
	}
	delete(m.conns, c)
	var changes []Change
	for _, group := range ms.consumers {
		if ch, ok := m.removeConsumer(group, c); ok {
			changes = append(changes, ch)
		}
	}
	for _, group := range ms.producers {
		m.removeProducer(group, c)
	}
	m.dropSender(c, ms)
	return changes
}

// Expire takes out the connections that no group has heard of for longer than
// the limit, and returns them so that they can be closed.
func (m *Manager) Expire(limit time.Duration) (dead []Conn, changes []Change) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.clock.Now().Add(-limit)
	for c, ms := range m.conns {
		if m.lastUpdate(c, ms).Before(before) {
			dead = append(dead, c)
		}
	}
	for _, c := range dead {
		changes = append(changes, m.removeConn(c)...)
	}
	return dead, changes
}

func (m *Manager) lastUpdate(c Conn, ms *membership) time.Time {
	var last time.Time
	for _, group := range ms.consumers {
		if x := m.consumers[group].members[c]; x != nil && x.Updated.After(last) {
			last = x.Updated
		}
	}
	for _, group := range ms.producers {
		if x := m.producers[group][c]; x != nil && x.Updated.After(last) {
			last = x.Updated
		}
	}
	return last
}

func add(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

func remove(list []string, s string) []string {
	if i := slices.Index(list, s); i >= 0 {
		return slices.Delete(list, i, i+1)
	}
	return list
}

func sortedClients(members map[Conn]*Client) []Client {
	out := make([]Client, 0, len(members))
	for _, c := range members {
		out = append(out, *c)
	}
	slices.SortFunc(out, func(a, b Client) int { return cmp.Or(cmp.Compare(a.ID, b.ID), a.Updated.Compare(b.Updated)) })
	return out
}
