package rocketmq

import (
	"log/slog"
	"strconv"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Queue names one queue of a topic. It is comparable and can be a map key.
type Queue struct {
	Topic, Broker string // Broker is the broker's name, not its address
	ID            int
}

// String is "topic/broker/id".
func (q Queue) String() string {
	return q.Topic + "/" + q.Broker + "/" + strconv.Itoa(q.ID)
}

// LogValue implements [slog.LogValuer].
func (q Queue) LogValue() slog.Value { return slog.StringValue(q.String()) }

// Compare orders queues by topic, broker and id, as every member of a group
// must order them to share them without overlap. It is negative if q comes
// before o.
func (q Queue) Compare(o Queue) int {
	if c := wire.CompareJava(q.Topic, o.Topic); c != 0 {
		return c
	}
	if c := wire.CompareJava(q.Broker, o.Broker); c != 0 {
		return c
	}
	return q.ID - o.ID
}

// Route is where a topic lives, as the name servers say. It is a snapshot and
// must not be changed.
type Route struct {
	Topic    string
	Publish  []Queue // writable queues of brokers that have a master, sorted by broker and id
	Readable []Queue // readable queues, sorted likewise
	Brokers  []RouteBroker
}

// RouteBroker is one broker group of a [Route]: a master and its replicas.
type RouteBroker struct {
	Name, Cluster string
	Addrs         map[int64]string // by broker id; the master has id 0
}
