package broker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/gorocketmq/rocketmq/internal/broker/topics"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Topics: UPDATE_AND_CREATE_TOPIC (17), UPDATE_AND_CREATE_TOPIC_LIST (18),
// GET_ALL_TOPIC_CONFIG (21), GET_TOPIC_STATS_INFO (202), DELETE_TOPIC_IN_BROKER
// (215), GET_SYSTEM_TOPIC_LIST_FROM_BROKER (305), GET_TOPIC_CONFIG (351).
//
// Fields read: those of wire.CreateTopicRequest, wire.TopicRequest; the body of 18.
//
// Answers: 0; 1 malformed, bad attributes; 17 202 and 351: no topic; 29 bad
// name, reserved topic, bad counts. 17, 18 and 215 answer once the change is
// saved and the name servers in reach know of it.
//
// Unlike Apache: negative or excessive queue counts are refused; paging of 21
// (releases after 5.3.3) is not offered, everything is returned, which clients
// understand.

// settleTimeout bounds how long an answer waits for the disk and the name servers.
const settleTimeout = 5 * time.Second

// maxQueues is the largest number of queues a topic may have. Apache has no
// limit; a slip of the keyboard here would cost a file per queue.
const maxQueues = 65536

func (b *Broker) handleCreateTopic(r *remoting.Request) {
	var req wire.CreateTopicRequest
	if malformed(r, req.DecodeExt(r.Frame())) {
		return
	}
	attrs, err := b.changedAttributes(req.Topic, req.Attributes)
	if malformed(r, err) {
		return
	}
	cfg := wire.TopicConfig{
		Name: req.Topic, ReadQueues: req.ReadQueues, WriteQueues: req.WriteQueues, Perm: req.Perm, FilterType: req.FilterType,
		SysFlag: req.SysFlag, Order: req.Order, Attributes: attrs,
	}
	if err := b.PutTopics(b.bg.Context(), cfg); err != nil {
		r.Reply(wire.RespInvalidParameter, err.Error(), nil, nil)
		return
	}
	r.Reply(wire.RespSuccess, "", nil, nil)
}

func (b *Broker) handleCreateTopics(r *remoting.Request) {
	list, err := wire.DecodeTopicConfigList(r.Frame().Body)
	if malformed(r, err) {
		return
	}
	if err := b.PutTopics(b.bg.Context(), list.Topics...); err != nil {
		r.Reply(wire.RespInvalidParameter, err.Error(), nil, nil)
		return
	}
	r.Reply(wire.RespSuccess, "", nil, nil)
}

// CreateTopic makes a topic with as many read as write queues, or changes its
// counts. It returns when the topic is saved and the name servers in reach
// list it, at the latest after 5 s.
func (b *Broker) CreateTopic(ctx context.Context, name string, queues int) error {
	cfg := wire.NewTopicConfig(name)
	if old := b.topics.Lookup(name); old != nil {
		cfg = old.TopicConfig
	}
	cfg.ReadQueues, cfg.WriteQueues = int32(queues), int32(queues)
	return b.PutTopics(ctx, cfg)
}

// PutTopics creates or replaces topics, all or none. It returns as
// [Broker.CreateTopic] does.
func (b *Broker) PutTopics(ctx context.Context, cfgs ...wire.TopicConfig) error {
	for i := range cfgs {
		if err := b.checkTopic(&cfgs[i]); err != nil {
			return err
		}
	}
	var names []string
	for _, cfg := range cfgs {
		if _, changed := b.topics.Put(cfg); changed {
			names = append(names, cfg.Name)
		}
	}
	if len(names) > 0 {
		b.settle(ctx, names...)
	}
	return nil
}

func (b *Broker) checkTopic(c *wire.TopicConfig) error {
	if err := wire.ValidateTopic(c.Name); err != nil {
		return err
	}
	if b.topics.IsSystem(c.Name) {
		return fmt.Errorf("topic %s is reserved for the broker", c.Name)
	}
	if c.ReadQueues < 0 || c.WriteQueues < 0 || max(c.ReadQueues, c.WriteQueues) > maxQueues {
		return fmt.Errorf("topic %s with %d read and %d write queues: both must be from 0 to %d", c.Name, c.ReadQueues, c.WriteQueues, maxQueues)
	}
	return nil
}

// topicChanged has a change saved and registered soon.
func (b *Broker) topicChanged(names ...string) (saved uint64) {
	saved = b.saver.topics.Ask()
	b.registrar.change(names...)
	return saved
}

// settle is topicChanged that waits.
func (b *Broker) settle(ctx context.Context, names ...string) {
	saved := b.topicChanged(names...)
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	_ = b.saver.topics.Wait(ctx, saved)
	b.registrar.wait(ctx)
}

// attribute tells whether a topic attribute is known, and whether it may be
// changed once it is set.
func attribute(key string) (mutable, known bool) {
	switch key {
	case "message.type", "reserve.time":
		return true, true
	case "queue.type", "cleanup.policy":
		return false, true
	}
	return false, false
}

// changedAttributes applies a list of changes, +key=value and -key with commas
// between, to the attributes of a topic.
func (b *Broker) changedAttributes(topic, changes string) (map[string]string, error) {
	attrs := map[string]string{}
	old := b.topics.Lookup(topic)
	if old != nil {
		maps.Copy(attrs, old.Attributes)
	}
	for part := range strings.SplitSeq(changes, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		key, value, _ := strings.Cut(part[1:], "=")
		mutable, known := attribute(key)
		switch {
		case !known:
			return nil, fmt.Errorf("attribute %q is not known", key)
		case part[0] == '-' || part[0] == '+' && value != "":
		default:
			return nil, fmt.Errorf("attribute change %q: write +key=value or -key", part)
		}
		if was, there := attrs[key]; there && !mutable && was != value {
			return nil, fmt.Errorf("attribute %s of topic %s cannot be changed", key, topic)
		}
		if part[0] == '-' {
			delete(attrs, key)
		} else {
			attrs[key] = value
		}
	}
	return attrs, nil
}

func (b *Broker) handleDeleteTopic(r *remoting.Request) {
	var req wire.TopicRequest
	if malformed(r, req.DecodeExt(r.Frame())) {
		return
	}
	if req.Topic == "" || b.topics.IsSystem(req.Topic) {
		r.Reply(wire.RespInvalidParameter, "topic "+req.Topic+" is reserved for the broker", nil, nil)
		return
	}
	if err := b.DeleteTopic(b.bg.Context(), req.Topic); malformed(r, err) {
		return
	}
	r.Reply(wire.RespSuccess, "", nil, nil)
}

// DeleteTopic removes a topic, its queues and all groups' offsets in it, and
// likewise the retry topics of groups that popped from it. Name servers go on
// listing it until they are told by DELETE_TOPIC_IN_NAMESRV.
func (b *Broker) DeleteTopic(ctx context.Context, name string) error {
	names := []string{name}
	for _, group := range b.offsets.Groups(name) {
		for _, retry := range [...]string{wire.PopRetryTopic(group, name), wire.PopRetryTopicV2(group, name)} {
			if b.topics.Lookup(retry) != nil {
				names = append(names, retry)
			}
		}
	}
	var errs []error
	for _, name := range names {
		errs = append(errs, b.deleteTopic(ctx, name))
	}
	return errors.Join(errs...)
}

func (b *Broker) deleteTopic(ctx context.Context, name string) error {
	if b.topics.Delete(name) {
		_ = b.saver.topics.Wait(ctx, b.saver.topics.Ask())
	}
	b.offsets.RemoveTopic(name)
	b.polls.wakeTopic(name)
	b.pop.TopicDeleted(name)
	if err := b.store.DeleteTopic(ctx, name); err != nil {
		return fmt.Errorf("deleting the queues of topic %s: %w", name, err)
	}
	return nil
}

func (b *Broker) handleAllTopics(r *remoting.Request) {
	all := b.topics.Snapshot()
	r.Reply(wire.RespSuccess, "", nil, all.AppendJSON(nil))
}

func (b *Broker) handleTopicConfig(r *remoting.Request) {
	if t := b.askedTopic(r); t != nil {
		r.Reply(wire.RespSuccess, "", nil, t.AppendJSON(nil))
	}
}

// askedTopic is the topic a request names; nil if that was answered already.
func (b *Broker) askedTopic(r *remoting.Request) *topics.Topic {
	var req wire.TopicRequest
	if malformed(r, req.DecodeExt(r.Frame())) {
		return nil
	}
	t := b.topics.Lookup(req.Topic)
	if t == nil {
		r.Reply(wire.RespTopicNotExist, "No topic in this broker. topic: "+req.Topic, nil, nil)
	}
	return t
}

func (b *Broker) handleTopicStats(r *remoting.Request) {
	t := b.askedTopic(r)
	if t == nil {
		return
	}
	body := wire.TopicStats{Offsets: map[wire.MessageQueue]wire.TopicOffset{}}
	for id := range t.Queues() {
		o := wire.TopicOffset{MinOffset: max(b.store.MinOffset(t.Name, id), 0), MaxOffset: max(b.store.MaxOffset(t.Name, id), 0)}
		if o.MaxOffset > 0 {
			o.LastUpdate = max(b.store.StoreTimeAt(t.Name, id, o.MaxOffset-1), 0)
		}
		body.Offsets[wire.MessageQueue{Topic: t.Name, Broker: b.cfg.Name, QueueID: id}] = o
	}
	r.Reply(wire.RespSuccess, "", nil, body.AppendJSON(nil))
}

func (b *Broker) handleSystemTopics(r *remoting.Request) {
	list := wire.TopicList{Topics: b.topics.SystemNames()}
	r.Reply(wire.RespSuccess, "", nil, list.AppendJSON(nil))
}
