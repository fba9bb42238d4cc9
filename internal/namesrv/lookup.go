package namesrv

import (
	"context"
	"maps"
	"slices"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

// route is the answer to a route question, encoded; nil if the topic has no
// broker. The bytes are shared and must not be changed.
func (t *tables) route(topic string, strict bool) []byte {
	k := routeKey{topic, strict}
	t.mu.RLock()
	b := t.encoded[k]
	t.mu.RUnlock()
	if b != nil {
		return b
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	d, ok := t.routeData(topic)
	if !ok {
		return nil
	}
	if strict {
		b = d.AppendStrictJSON(nil)
	} else {
		b = d.AppendJSON(nil)
	}
	t.encoded[k] = b
	return b
}

// zoneRoute is [tables.route] without the brokers of other zones. Brokers
// without a zone serve all.
func (t *tables) zoneRoute(topic, zone string) []byte {
	t.mu.RLock()
	defer t.mu.RUnlock()
	d, ok := t.routeData(topic)
	if !ok {
		return nil
	}
	d.Brokers = slices.DeleteFunc(d.Brokers, func(b wire.BrokerData) bool {
		return b.ZoneName != "" && b.ZoneName != zone
	})
	d.Queues = slices.DeleteFunc(d.Queues, func(q wire.QueueData) bool {
		return !slices.ContainsFunc(d.Brokers, func(b wire.BrokerData) bool { return b.BrokerName == q.BrokerName })
	})
	return d.AppendJSON(nil)
}

// routeData must be called with mu held. The result shares memory with the
// tables. Apache gives brokers in the order of a hash map, here they are in
// the order of their names.
func (t *tables) routeData(topic string) (*wire.RouteData, bool) {
	queues := t.topics[topic]
	d := &wire.RouteData{OrderTopicConf: t.order[topic]}
	for _, name := range slices.Sorted(maps.Keys(queues)) {
		d.Queues = append(d.Queues, queues[name])
		if b := t.brokers[name]; b != nil {
			d.Brokers = append(d.Brokers, *b)
		}
	}
	return d, len(d.Brokers) > 0
}

// clusterInfo is the answer about all clusters.
func (t *tables) clusterInfo() *wire.ClusterInfo {
	t.mu.RLock()
	defer t.mu.RUnlock()
	info := &wire.ClusterInfo{
		Brokers:  make(map[string]wire.BrokerData, len(t.brokers)),
		Clusters: make(map[string][]string, len(t.clusters)),
	}
	for name, b := range t.brokers {
		info.Brokers[name] = brokerData(b)
	}
	for c, names := range t.clusters {
		info.Clusters[c] = slices.Sorted(maps.Keys(names))
	}
	return info
}

// member is one broker name with its addresses; the addresses are empty if the
// name is unknown in this cluster.
func (t *tables) member(cluster, name string) wire.BrokerData {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if b := t.brokers[name]; b != nil && b.Cluster == cluster {
		return brokerData(b)
	}
	return wire.BrokerData{Cluster: cluster, BrokerName: name}
}

// topicNames lists the topics for which keep is true, sorted. keep sees the
// queues of one topic by broker name.
func (t *tables) topicNames(keep func(map[string]wire.QueueData) bool) []string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	out := make([]string, 0, len(t.topics))
	for topic, queues := range t.topics {
		if keep(queues) {
			out = append(out, topic)
		}
	}
	slices.Sort(out)
	return out
}

// clusterTopics lists the topics that some broker of a cluster has.
func (t *tables) clusterTopics(cluster string) []string {
	return t.topicNames(func(queues map[string]wire.QueueData) bool {
		for name := range queues {
			if _, ok := t.clusters[cluster][name]; ok { // under mu: topicNames holds it
				return true
			}
		}
		return false
	})
}

// systemTopics lists what is a topic by being a name of a cluster or broker,
// with the address of one broker, as Apache's answer has it.
func (t *tables) systemTopics() (names []string, addr string) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, c := range slices.Sorted(maps.Keys(t.clusters)) {
		names = append(names, c)
		names = append(names, slices.Sorted(maps.Keys(t.clusters[c]))...)
	}
	for _, name := range slices.Sorted(maps.Keys(t.brokers)) {
		addrs := t.brokers[name].Addrs
		return names, addrs[lowest(addrs)]
	}
	return names, ""
}

// waitBroker blocks until a broker name has a live master.
func (t *tables) waitBroker(ctx context.Context, name string) error {
	for {
		t.mu.Lock()
		if b := t.brokers[name]; b != nil && b.Addrs[0] != "" {
			t.mu.Unlock()
			return nil
		}
		if t.news == nil {
			t.news = make(chan struct{})
		}
		news := t.news
		t.mu.Unlock()
		select {
		case <-news:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
