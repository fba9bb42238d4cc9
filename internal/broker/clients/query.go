package clients

import (
	"cmp"
	"maps"
	"slices"
)

// Find looks up what a pull needs: whether the group has a member, whether it
// broadcasts, and its subscription of the topic, nil if it has none. It does
// not allocate.
func (m *Manager) Find(group, topic []byte) (s *Subscription, broadcasting, online bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	g := m.consumers[string(group)]
	if g == nil {
		return nil, false, false
	}
	return g.subs[string(topic)], g.model == "BROADCASTING", true
}

// Group returns what is known of a consumer group.
func (m *Manager) Group(name string) (Group, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	g := m.consumers[name]
	if g == nil {
		return Group{}, false
	}
	out := Group{Name: name, ConsumeType: g.typ, Model: g.model, From: g.from, Members: sortedClients(g.members)}
	for _, s := range g.subs {
		out.Subscriptions = append(out.Subscriptions, s)
	}
	slices.SortFunc(out.Subscriptions, func(a, b *Subscription) int { return cmp.Compare(a.Topic, b.Topic) })
	return out, true
}

// ConsumerIDs are the members of a consumer group, each id once, sorted. All
// members must see the same list to share the queues out alike.
func (m *Manager) ConsumerIDs(group string) []string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	g := m.consumers[group]
	if g == nil {
		return nil
	}
	ids := make([]string, 0, len(g.members))
	for _, c := range g.members {
		ids = append(ids, c.ID)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// Member returns the member of a group with a client id; of several
// connections with the same id the one heard of last.
func (m *Manager) Member(group, id string) (Client, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	g := m.consumers[group]
	if g == nil {
		return Client{}, false
	}
	var best *Client
	for _, c := range g.members {
		if c.ID == id && (best == nil || c.Updated.After(best.Updated)) {
			best = c
		}
	}
	if best == nil {
		return Client{}, false
	}
	return *best, true
}

// Producers are the members of a producer group, sorted by id.
func (m *Manager) Producers(group string) []Client {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return sortedClients(m.producers[group])
}

// Sender returns the connection of a client that has a producer, nil if there is
// none; of several connections of one client id the one that came last.
func (m *Manager) Sender(id []byte) Conn {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if list := m.senders[string(id)]; len(list) > 0 {
		return list[len(list)-1]
	}
	return nil
}

// ProducerGroups are the groups with at least one producer, sorted.
func (m *Manager) ProducerGroups() []string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return slices.Sorted(maps.Keys(m.producers))
}

// Subscribers are the consumer groups online that subscribe to a topic, sorted.
func (m *Manager) Subscribers(topic string) []string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var names []string
	for name, g := range m.consumers {
		if g.subs[topic] != nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
