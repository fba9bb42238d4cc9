package alloc

import (
	"fmt"
	"slices"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Nearby gives the queues of each machine room to the members in it, divided
// by inner; the queues of rooms without members are divided among all
// (AllocateMachineRoomNearby). roomOf names the room of a broker and of a
// client; an empty answer is an error, since the members could no longer
// agree. A self that is no member gets nothing.
func Nearby[Q AnyQueue](self string, members []string, queues []Q, roomOf func(name string) string,
	inner func(self string, members []string, queues []Q) ([]Q, error)) ([]Q, error) {
	rooms := make(map[string][]Q)
	for _, q := range queues {
		room := roomOf(Queue(q).Broker)
		if room == "" {
			return nil, fmt.Errorf("no machine room is known for broker %q", Queue(q).Broker)
		}
		rooms[room] = append(rooms[room], q)
	}
	staff := make(map[string][]string)
	for _, m := range members {
		room := roomOf(m)
		if room == "" {
			return nil, fmt.Errorf("no machine room is known for client %q", m)
		}
		staff[room] = append(staff[room], m)
	}
	if !slices.Contains(members, self) {
		return nil, nil
	}
	own := roomOf(self)
	var out []Q
	if qs := rooms[own]; len(qs) > 0 {
		got, err := inner(self, staff[own], qs)
		if err != nil {
			return nil, err
		}
		out = append(out, got...)
	}
	var orphans []string
	for room := range rooms {
		if _, ok := staff[room]; !ok {
			orphans = append(orphans, room)
		}
	}
	slices.SortFunc(orphans, wire.CompareJava)
	for _, room := range orphans {
		got, err := inner(self, members, rooms[room])
		if err != nil {
			return nil, err
		}
		out = append(out, got...)
	}
	return out, nil
}
