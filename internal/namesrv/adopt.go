package namesrv

import (
	"errors"
	"maps"
	"time"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

// registration is one broker's report about itself.
type registration struct {
	cluster, name, addr, haAddr, zone string

	id      int64
	acting  *bool // nil: a broker of 4.x, which does not know the field
	timeout time.Duration
	version wire.DataVersion
	topics  map[string]wire.TopicConfig
	conn    peer
	now     time.Time
}

// errSingleTopic is the refusal of a newcomer with exactly one topic.
var errSingleTopic = errors.New("register broker failed: an unknown broker must register all its topics first, this registration has only one")

// registered is what came of a registration.
type registered struct {
	joined           bool   // the process was not known before
	master, masterHA string // for a slave, if its master is alive
}

// register applies a registration, by the rules of
// RouteInfoManager.registerBroker of 5.3.
func (t *tables) register(r *registration) (registered, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := liveKey{r.cluster, r.addr}
	b, first := t.brokers[r.name], false
	if b != nil {
		if old := b.Addrs[r.id]; old != "" && old != r.addr {
			// Two processes claim one id. The one that was elected later
			// counts; a master that lost its office still believes in it.
			if l := t.live[liveKey{r.cluster, old}]; l != nil && l.version.StateVersion > r.version.StateVersion {
				delete(t.live, key)
				return registered{}, nil
			}
		}
	}
	if (b == nil || b.Addrs[r.id] == "") && len(r.topics) == 1 {
		// A report of one changed topic that overtook the full registration:
		// were it taken, the broker would seem to have only this topic.
		return registered{}, errSingleTopic
	}
	if b == nil {
		b, first = &wire.BrokerData{BrokerName: r.name, Addrs: map[int64]string{}}, true
		t.brokers[r.name] = b
	}
	if t.describe(b, r) {
		t.changed()
	}
	first = first || b.Addrs[r.id] == ""
	if b.Addrs[r.id] != r.addr {
		b.Addrs[r.id] = r.addr
		t.changed()
	}
	prime := r.acting != nil && r.id != 0 && r.id == lowest(b.Addrs)
	if r.id == 0 || prime {
		t.adopt(r, key, first, prime && b.EnableActingMaster)
	}
	out := registered{joined: t.live[key] == nil}
	t.live[key] = &liveBroker{
		name: r.name, id: r.id, haAddr: r.haAddr, version: r.version,
		seen: r.now, timeout: r.timeout, conn: r.conn,
	}
	if r.id == 0 {
		return out, nil
	}
	master := b.Addrs[0]
	if l := t.live[liveKey{r.cluster, master}]; master != "" && l != nil {
		out.master, out.masterHA = master, l.haAddr
	}
	return out, nil
}

// describe brings what is known of a broker name up to date and reports
// whether anything was new. mu must be held for writing.
func (t *tables) describe(b *wire.BrokerData, r *registration) bool {
	acting := r.acting != nil && *r.acting
	dirty := b.Cluster != r.cluster || b.EnableActingMaster != acting || b.ZoneName != r.zone
	if b.Cluster != r.cluster && b.Cluster != "" {
		delete(t.clusters[b.Cluster], r.name)
		if len(t.clusters[b.Cluster]) == 0 {
			delete(t.clusters, b.Cluster)
		}
	}
	b.Cluster, b.EnableActingMaster, b.ZoneName = r.cluster, acting, r.zone
	if t.clusters[r.cluster] == nil {
		t.clusters[r.cluster] = map[string]struct{}{}
	}
	t.clusters[r.cluster][r.name] = struct{}{}
	// A slave that became master reports its old address under a new id.
	before := len(b.Addrs)
	maps.DeleteFunc(b.Addrs, func(id int64, addr string) bool { return addr == r.addr && id != r.id })
	return dirty || len(b.Addrs) != before
}

// adopt takes over a broker's topics where they may differ from what is known.
// Topics that are missing from the report stay: it may be a report of the
// changed ones alone. mu must be held for writing.
func (t *tables) adopt(r *registration, key liveKey, first, readOnly bool) {
	l := t.live[key]
	if l != nil && l.conn != r.conn && r.full() {
		// The broker has a new connection and the end of the old one has not
		// been noticed yet. Had it been, the old topics would be gone. Apache
		// keeps them if it notices too late, so that a broker restarted with
		// auto-create off goes on being listed for the default topic.
		t.dropOthers(r)
	}
	newer := first || l == nil || l.version != r.version
	for topic, c := range r.topics {
		old, known := t.topics[topic][r.name]
		if known && !newer {
			continue
		}
		q := wire.QueueData{
			BrokerName: r.name, ReadQueues: c.ReadQueues, WriteQueues: c.WriteQueues,
			Perm: c.Perm, SysFlag: c.SysFlag,
		}
		if readOnly {
			q.Perm &^= wire.PermWrite
		}
		if !known || old != q {
			t.putQueues(topic, q)
			t.changed()
		}
	}
}

// full is true for a report that is surely of all topics: every broker has this
// one from its first start on, and it never changes.
func (r *registration) full() bool {
	_, ok := r.topics[wire.TopicSelfTest]
	return ok && r.id == 0
}

// dropOthers forgets the topics of a broker that are not in its report. mu must
// be held for writing.
func (t *tables) dropOthers(r *registration) {
	for topic, queues := range t.topics {
		_, has := queues[r.name]
		if _, reported := r.topics[topic]; has && !reported {
			t.dropQueues(topic, r.name)
			t.changed()
		}
	}
}
