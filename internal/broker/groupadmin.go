package broker

import (
	"slices"
	"strings"

	"github.com/gorocketmq/rocketmq/internal/broker/clients"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Groups: UPDATE_AND_CREATE_SUBSCRIPTIONGROUP (200),
// GET_ALL_SUBSCRIPTIONGROUP_CONFIG (201), GET_CONSUMER_CONNECTION_LIST (203),
// GET_PRODUCER_CONNECTION_LIST (204), DELETE_SUBSCRIPTIONGROUP (207),
// GET_CONSUME_STATS (208), QUERY_TOPIC_CONSUME_BY_WHO (300),
// GET_SUBSCRIPTIONGROUP_CONFIG (352).
//
// Read: the body of 200, the fields of the wire headers for the others.
//
// Answers: 0; 1 malformed, 204: nobody; 26 352: no group; 29 bad group name;
// 206 203: nobody online.
//
// Unlike Apache: the rate of 208 is 0 (per-group rates are not kept), and
// paging of 201 (releases after 5.3.3) is not offered.

func (b *Broker) handlePutGroup(r *remoting.Request) {
	g, err := wire.DecodeSubscriptionGroup(r.Frame().Body)
	if malformed(r, err) {
		return
	}
	if err := wire.ValidateGroup(g.Name); err != nil {
		r.Reply(wire.RespInvalidParameter, err.Error(), nil, nil)
		return
	}
	b.groups.Put(g)
	b.saveGroupsNow()
	r.Reply(wire.RespSuccess, "", nil, nil)
}

func (b *Broker) handleAllGroups(r *remoting.Request) {
	r.Reply(wire.RespSuccess, "", nil, b.groups.Encode())
}

func (b *Broker) handleGroupConfig(r *remoting.Request) {
	var req wire.SubscriptionGroupRequest
	if malformed(r, req.DecodeExt(r.Frame())) {
		return
	}
	g := b.groups.Lookup(req.Group)
	if g == nil {
		r.Reply(wire.RespSubscriptionGroupNotExist, "No group in this broker. group: "+req.Group, nil, nil)
		return
	}
	r.Reply(wire.RespSuccess, "", nil, g.AppendJSON(nil))
}

func (b *Broker) handleDeleteGroup(r *remoting.Request) {
	var req wire.DeleteGroupRequest
	if malformed(r, req.DecodeExt(r.Frame())) {
		return
	}
	if b.groups.Delete(req.Group) {
		b.saveGroupsNow()
	}
	if req.CleanOffset {
		b.offsets.RemoveGroup(req.Group)
	}
	r.Reply(wire.RespSuccess, "", nil, nil)
}

func (b *Broker) handleConsumerConnections(r *remoting.Request) {
	var req wire.GroupRequest
	if malformed(r, req.DecodeExt(r.Frame())) {
		return
	}
	g, online := b.clients.Group(req.Group)
	if !online {
		r.Reply(wire.RespConsumerNotOnline, "the consumer group["+req.Group+"] not online", nil, nil)
		return
	}
	body := wire.ConsumerConnection{
		Connections: connections(g.Members), ConsumeType: g.ConsumeType, Model: g.Model, From: g.From,
		Subscriptions: map[string]wire.Subscription{},
	}
	for _, s := range g.Subscriptions {
		body.Subscriptions[s.Topic] = s.Subscription
	}
	r.Reply(wire.RespSuccess, "", nil, body.AppendJSON(nil))
}

func (b *Broker) handleProducerConnections(r *remoting.Request) {
	var req wire.ProducerGroupRequest
	if malformed(r, req.DecodeExt(r.Frame())) {
		return
	}
	members := b.clients.Producers(req.Group)
	if len(members) == 0 {
		r.Reply(wire.RespSystemError, "the producer group["+req.Group+"] not exist", nil, nil)
		return
	}
	body := wire.ProducerConnection{Connections: connections(members)}
	r.Reply(wire.RespSuccess, "", nil, body.AppendJSON(nil))
}

func connections(members []clients.Client) []wire.Connection {
	out := make([]wire.Connection, 0, len(members))
	for _, c := range members {
		out = append(out, wire.Connection{ClientID: c.ID, ClientAddr: c.Conn.Remote(), Language: languageName(c.Language), Version: c.Version})
	}
	return out
}

// languageName is Apache's name of a language; it has none for a byte it does
// not know, OTHER stands in.
func languageName(l wire.Language) string {
	names := [...]string{
		"JAVA", "CPP", "DOTNET", "PYTHON", "DELPHI", "ERLANG", "RUBY", "OTHER", "HTTP", "GO", "PHP", "OMS", "RUST", "NODE_JS",
	}
	if int(l) < len(names) {
		return names[l]
	}
	return "OTHER"
}

func (b *Broker) handleConsumeStats(r *remoting.Request) {
	var req wire.ConsumeStatsRequest
	if malformed(r, req.DecodeExt(r.Frame())) {
		return
	}
	var names []string
	switch {
	case req.Topic != "":
		names = []string{req.Topic}
	case req.TopicList != "":
		names = strings.FieldsFunc(req.TopicList, func(c rune) bool { return c == ';' })
	default:
		names = b.offsets.Topics(req.Group)
	}
	online, isOnline := b.clients.Group(req.Group)
	body := wire.ConsumeStats{Offsets: map[wire.MessageQueue]wire.OffsetWrapper{}}
	for _, name := range names {
		subscribed := slices.ContainsFunc(online.Subscriptions, func(s *clients.Subscription) bool {
			return s.Topic == name || s.Topic == wire.PopNormalTopic(req.Group, name) // also what it pops again
		})
		if !isOnline || subscribed {
			b.consumeStats(req.Group, name, body.Offsets)
		}
	}
	r.Reply(wire.RespSuccess, "", nil, body.AppendJSON(nil))
}

func (b *Broker) consumeStats(group, topic string, out map[wire.MessageQueue]wire.OffsetWrapper) {
	t := b.topics.Lookup(topic)
	if t == nil {
		return
	}
	for id := range t.ReadQueues {
		off, _ := b.offsets.Offset([]byte(group), []byte(topic), id)
		w := wire.OffsetWrapper{
			BrokerOffset: max(b.store.MaxOffset(topic, id), 0), ConsumerOffset: max(off, 0),
			PullOffset: b.offsets.PullOffset([]byte(group), []byte(topic), id),
		}
		if off > 0 {
			w.LastTimestamp = max(b.store.StoreTimeAt(topic, id, off-1), 0)
		}
		out[wire.MessageQueue{Topic: topic, Broker: b.cfg.Name, QueueID: id}] = w
	}
}

func (b *Broker) handleTopicGroups(r *remoting.Request) {
	var req wire.TopicRequest
	if malformed(r, req.DecodeExt(r.Frame())) {
		return
	}
	names := append(b.clients.Subscribers(req.Topic), b.offsets.Groups(req.Topic)...)
	slices.Sort(names)
	body := wire.GroupList{Groups: slices.Compact(names)}
	r.Reply(wire.RespSuccess, "", nil, body.AppendJSON(nil))
}
