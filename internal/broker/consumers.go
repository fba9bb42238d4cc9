package broker

import (
	"slices"

	"github.com/gorocketmq/rocketmq/internal/broker/clients"
)

// What those who watch consumers from inside the process need.

// ConsumerGroups are the consumer groups that are online or have committed an
// offset, sorted.
func (b *Broker) ConsumerGroups() []string {
	return slices.DeleteFunc(b.groups.Names(), func(name string) bool {
		_, online := b.clients.Group(name)
		return !online && len(b.offsets.Topics(name)) == 0
	})
}

// ConsumerGroup returns what the members of a group said of it; false if none
// is online.
func (b *Broker) ConsumerGroup(name string) (clients.Group, bool) { return b.clients.Group(name) }

// ReleasePulls answers the pulls of a group that are held for a topic, as if
// their time were over. The next ones bring the offsets that consumers would
// otherwise commit seconds later.
func (b *Broker) ReleasePulls(group, topic string) { b.polls.release(group, topic) }

// release hands the pulls of a group over as expire does.
func (p *polls) release(group, topic string) {
	p.mu.Lock()
	for _, q := range p.queues[topic] {
		for i := len(q.held) - 1; i >= 0; i-- { // take fills the gap from the end
			if op := q.held[i]; string(op.req.Group) == group {
				p.take(op)
				op.hold.final = true
				p.ready = append(p.ready, op)
			}
		}
	}
	p.mu.Unlock()
	p.kick()
}
