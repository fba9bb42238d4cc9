package alloc

import (
	"crypto/md5" // fixed by the peers' algorithm; nothing is protected with it
	"encoding/binary"
	"slices"
	"sort"
	"strconv"
)

// VirtualNodes is how many points on the ring a member has unless told
// otherwise, in Apache's class and here.
const VirtualNodes = 10

type point struct {
	hash   uint32
	member int
}

// ConsistentHash puts virtual points per member on a ring and gives each
// queue to the member whose point follows the queue's
// (AllocateMessageQueueConsistentHash). A virtual of 0 or less means
// [VirtualNodes]. The queues keep their order.
func ConsistentHash[Q AnyQueue](self string, members []string, queues []Q, virtual int) []Q {
	me := slices.Index(members, self)
	if me < 0 {
		return nil
	}
	if virtual <= 0 {
		virtual = VirtualNodes
	}
	ring := make([]point, 0, len(members)*virtual)
	var key []byte
	for i, m := range members {
		for k := range virtual {
			key = append(key[:0], m...)
			key = append(key, '-')
			key = strconv.AppendInt(key, int64(k), 10)
			ring = append(ring, point{ringHash(key), i})
		}
	}
	// Two points on one spot: the one put later replaces the earlier, as in a
	// map; a stable sort keeps them in order of putting, so the last is ours.
	slices.SortStableFunc(ring, func(a, b point) int {
		switch {
		case a.hash < b.hash:
			return -1
		case a.hash > b.hash:
			return 1
		}
		return 0
	})
	var out []Q
	for _, q := range queues {
		key = AppendText(key[:0], Queue(q))
		h := ringHash(key)
		at := sort.Search(len(ring), func(i int) bool { return ring[i].hash >= h })
		if at == len(ring) {
			at = 0
		}
		for at+1 < len(ring) && ring[at+1].hash == ring[at].hash {
			at++
		}
		if ring[at].member == me {
			out = append(out, q)
		}
	}
	return out
}

// AppendText appends the text Java gives a queue, which is what is hashed.
func AppendText(dst []byte, q Queue) []byte {
	dst = append(dst, "MessageQueue [topic="...)
	dst = append(dst, q.Topic...)
	dst = append(dst, ", brokerName="...)
	dst = append(dst, q.Broker...)
	dst = append(dst, ", queueId="...)
	dst = strconv.AppendInt(dst, int64(q.ID), 10)
	return append(dst, ']')
}

func ringHash(key []byte) uint32 {
	sum := md5.Sum(key)
	return binary.BigEndian.Uint32(sum[:])
}
