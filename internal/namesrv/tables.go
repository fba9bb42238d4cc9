package namesrv

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

// peer is the connection a broker registered over. It is an interface so that
// the tables know nothing of connections but their identity and their end.
type peer interface{ Close(cause error) }

// liveKey names one registered broker process. Two clusters may use one
// address (behind different networks), so the address alone is not enough.
type liveKey struct{ cluster, addr string }

// liveBroker is what keeps one broker process in the tables.
type liveBroker struct {
	name    string
	id      int64
	haAddr  string
	version wire.DataVersion
	seen    time.Time
	timeout time.Duration
	conn    peer
}

// tables is the state of a name server: RouteInfoManager of Apache. All of it
// is derived from registrations and gone with the process. Methods are safe
// for concurrent use; the lock is never held while anything is read or written
// outside memory.
type tables struct {
	mu       sync.RWMutex
	topics   map[string]map[string]wire.QueueData // topic, broker name
	brokers  map[string]*wire.BrokerData          // broker name
	clusters map[string]map[string]struct{}       // cluster, broker name
	live     map[liveKey]*liveBroker
	order    map[string]string // topic to orderTopicConf; nil: not told

	// encoded are routes as they go out. Any change that a route could show
	// drops them all: changes are rare, questions are not.
	encoded map[routeKey][]byte

	news chan struct{} // closed at the next change; nil: nobody waits
}

type routeKey struct {
	topic  string
	strict bool
}

func newTables() *tables {
	return &tables{
		topics:   map[string]map[string]wire.QueueData{},
		brokers:  map[string]*wire.BrokerData{},
		clusters: map[string]map[string]struct{}{},
		live:     map[liveKey]*liveBroker{},
		encoded:  map[routeKey][]byte{},
	}
}

// changed must be called with mu held for writing.
func (t *tables) changed() {
	clear(t.encoded)
	if t.news != nil {
		close(t.news)
		t.news = nil
	}
}

// setOrder replaces the order configuration that routes carry.
func (t *tables) setOrder(conf map[string]string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.order = conf
	t.changed()
}

// brokerData is a copy that shares nothing with the tables.
func brokerData(b *wire.BrokerData) wire.BrokerData {
	c := *b
	c.Addrs = maps.Clone(b.Addrs)
	return c
}

// lowest is the smallest broker id of a broker name. addrs must not be empty.
func lowest(addrs map[int64]string) int64 { return slices.Min(slices.Collect(maps.Keys(addrs))) }

// touch notes a sign of life of a broker that has registered before.
func (t *tables) touch(k liveKey, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if b := t.live[k]; b != nil {
		b.seen = now
	}
}

// dataVersion is the version of the topics a broker registered last.
func (t *tables) dataVersion(k liveKey) (wire.DataVersion, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if b := t.live[k]; b != nil {
		return b.version, true
	}
	return wire.DataVersion{}, false
}

// gone is a broker process that was taken out.
type gone struct {
	liveKey
	name string
	conn peer
}

// expire takes out the brokers that were silent for longer than they may be.
func (t *tables) expire(now time.Time) []gone {
	return t.removeWhere(func(b *liveBroker) bool { return now.Sub(b.seen) > b.timeout })
}

// disconnected takes out the brokers whose latest registration came over c.
func (t *tables) disconnected(c peer) []gone {
	return t.removeWhere(func(b *liveBroker) bool { return b.conn == c })
}

func (t *tables) removeWhere(match func(*liveBroker) bool) []gone {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []gone
	for k, b := range t.live {
		if match(b) {
			out = append(out, gone{k, b.name, b.conn})
		}
	}
	for _, g := range out {
		t.remove(g.liveKey, g.name)
	}
	return out
}

// unregister takes out one broker process at its own wish.
func (t *tables) unregister(k liveKey, name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.remove(k, name)
}

// remove must be called with mu held for writing. It works by address as
// Apache does: an id may meanwhile belong to another process.
func (t *tables) remove(k liveKey, name string) {
	delete(t.live, k)
	b := t.brokers[name]
	if b == nil || b.Cluster != k.cluster {
		return
	}
	before := len(b.Addrs)
	maps.DeleteFunc(b.Addrs, func(_ int64, addr string) bool { return addr == k.addr })
	if len(b.Addrs) == before {
		return
	}
	t.changed()
	if len(b.Addrs) > 0 {
		// Slaves remain: the topics stay readable. Nobody takes writes any
		// more if slaves stand in for a lost master.
		if _, master := b.Addrs[0]; !master && b.EnableActingMaster {
			t.clearWrite(name)
		}
		return
	}
	delete(t.brokers, name)
	if names := t.clusters[b.Cluster]; names != nil {
		delete(names, name)
		if len(names) == 0 {
			delete(t.clusters, b.Cluster)
		}
	}
	for topic := range t.topics {
		t.dropQueues(topic, name)
	}
}

// dropQueues must be called with mu held for writing.
func (t *tables) dropQueues(topic, broker string) {
	queues := t.topics[topic]
	delete(queues, broker)
	if len(queues) == 0 {
		delete(t.topics, topic)
	}
}

// clearWrite must be called with mu held for writing. It returns the number of
// topics the broker has.
func (t *tables) clearWrite(broker string) int {
	return t.setPerm(broker, func(perm int32) int32 { return perm &^ wire.PermWrite })
}

func (t *tables) setPerm(broker string, f func(int32) int32) int {
	n := 0
	for _, queues := range t.topics {
		if q, ok := queues[broker]; ok {
			q.Perm = f(q.Perm)
			queues[broker] = q
			n++
		}
	}
	t.changed()
	return n
}

// wipeWrite takes the write permission off all topics of a broker.
func (t *tables) wipeWrite(broker string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.clearWrite(broker)
}

// addWrite makes all topics of a broker readable and writable, and nothing
// else: Apache sets exactly these two bits.
func (t *tables) addWrite(broker string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.setPerm(broker, func(int32) int32 { return wire.PermRead | wire.PermWrite })
}

// deleteTopic forgets a topic, in one cluster only unless cluster is empty.
func (t *tables) deleteTopic(topic, cluster string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if cluster == "" {
		delete(t.topics, topic)
	} else {
		for name := range t.clusters[cluster] {
			t.dropQueues(topic, name)
		}
	}
	t.changed()
}

// addQueues adds a topic's queues of the brokers that are known and returns
// how many were not.
func (t *tables) addQueues(topic string, queues []wire.QueueData) (unknown int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, q := range queues {
		if t.brokers[q.BrokerName] == nil {
			unknown++
			continue
		}
		t.putQueues(topic, q)
	}
	t.changed()
	return unknown
}

// putQueues must be called with mu held for writing.
func (t *tables) putQueues(topic string, q wire.QueueData) {
	m := t.topics[topic]
	if m == nil {
		m = map[string]wire.QueueData{}
		t.topics[topic] = m
	}
	m[q.BrokerName] = q
}
