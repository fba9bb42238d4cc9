package client

import (
	"slices"
	"strconv"
	"strings"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

// makeRoute reads a name server's answer, as MQClientInstance does in
// topicRouteData2TopicPublishInfo and topicRouteData2TopicSubscribeInfo.
func makeRoute(topic string, d *wire.RouteData) *Route {
	rt := &Route{Topic: topic, Brokers: make(map[string]Broker, len(d.Brokers))}
	for _, b := range d.Brokers {
		addrs := make(map[int64]string, len(b.Addrs))
		for id, a := range b.Addrs {
			if a != "" {
				addrs[id] = a
			}
		}
		if len(addrs) > 0 {
			rt.Brokers[b.BrokerName] = Broker{Name: b.BrokerName, Cluster: b.Cluster, Addrs: addrs}
		}
	}
	for _, q := range d.Queues {
		b, ok := rt.Brokers[q.BrokerName]
		if !ok {
			continue
		}
		if q.Perm&wire.PermRead != 0 {
			rt.Readable = appendQueues(rt.Readable, topic, q.BrokerName, int(q.ReadQueues))
		}
		if q.Perm&wire.PermWrite != 0 && b.Master() != "" && d.OrderTopicConf == "" {
			rt.Publish = appendQueues(rt.Publish, topic, q.BrokerName, int(q.WriteQueues))
		}
	}
	if d.OrderTopicConf != "" {
		rt.Publish = orderQueues(rt, d.OrderTopicConf)
	}
	slices.SortFunc(rt.Publish, compareQueues)
	slices.SortFunc(rt.Readable, compareQueues)
	return rt
}

func appendQueues(dst []Queue, topic, broker string, n int) []Queue {
	n = min(n, maxQueues)
	for i := range n {
		dst = append(dst, Queue{topic, broker, int32(i)})
	}
	return dst
}

// orderQueues reads "broker-a:4;broker-b:4", which fixes the queues of ordered
// topics whatever brokers are up. A queue whose broker has no master cannot be
// sent to; it stays in the list so that keys keep their queue.
func orderQueues(rt *Route, conf string) []Queue {
	var qs []Queue
	for part := range strings.SplitSeq(conf, ";") {
		broker, count, ok := strings.Cut(strings.TrimSpace(part), ":")
		n, err := strconv.Atoi(count)
		if ok && err == nil && n > 0 {
			qs = appendQueues(qs, rt.Topic, broker, n)
		}
	}
	return qs
}
