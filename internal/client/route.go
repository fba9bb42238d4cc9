package client

import (
	"slices"
	"strings"
)

// Queue is one queue of a topic. ID counts from 0 on each broker.
type Queue struct {
	Topic, Broker string
	ID            int32
}

// MasterID is the broker id of a master.
const MasterID = 0

// Broker is a group of brokers of one name: a master and its replicas.
type Broker struct {
	Name, Cluster string
	Addrs         map[int64]string // by broker id
}

// Master is the master's address, "" if it has none now.
func (b Broker) Master() string { return b.Addrs[MasterID] }

// Any is an address to read from: that of id, else the master's, else that of
// the lowest id. It is "" only for a group without addresses.
func (b Broker) Any(id int64) string {
	if a := b.Addrs[id]; a != "" {
		return a
	}
	if a := b.Addrs[MasterID]; a != "" {
		return a
	}
	best, addr := int64(-1), ""
	for i, a := range b.Addrs {
		if a != "" && (best < 0 || i < best) {
			best, addr = i, a
		}
	}
	return addr
}

// Route is where a topic lives. It is immutable.
type Route struct {
	Topic    string
	Version  uint64  // grows with each change of any route of the runtime
	Publish  []Queue // writable, of brokers with a master, or as the topic's order configuration fixes them; sorted by broker and id
	Readable []Queue // readable; sorted likewise
	Brokers  map[string]Broker
}

// MasterOf is the address of the master of a broker name, "" if unknown.
func (r *Route) MasterOf(broker string) string { return r.Brokers[broker].Master() }

// BrokerNames are the names of the brokers, sorted.
func (r *Route) BrokerNames() []string {
	names := make([]string, 0, len(r.Brokers))
	for n := range r.Brokers {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

func compareQueues(a, b Queue) int {
	if c := strings.Compare(a.Broker, b.Broker); c != 0 {
		return c
	}
	return int(a.ID) - int(b.ID)
}

// equal compares all but the version.
func (r *Route) equal(o *Route) bool {
	if o == nil || r.Topic != o.Topic || !slices.Equal(r.Publish, o.Publish) || !slices.Equal(r.Readable, o.Readable) || len(r.Brokers) != len(o.Brokers) {
		return false
	}
	for name, b := range r.Brokers {
		c, ok := o.Brokers[name]
		if !ok || b.Cluster != c.Cluster || len(b.Addrs) != len(c.Addrs) {
			return false
		}
		for id, a := range b.Addrs {
			if c.Addrs[id] != a {
				return false
			}
		}
	}
	return true
}
