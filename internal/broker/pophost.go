package broker

import (
	"github.com/gorocketmq/rocketmq/internal/broker/pop"
	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/broker/topics"
	"github.com/gorocketmq/rocketmq/internal/filter"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// popHost is what POP consumption needs of the broker.
type popHost struct{ b *Broker }

var _ pop.Host = popHost{}

func (b *Broker) newPop() *pop.Service {
	return pop.New(pop.Config{
		Broker: b.cfg.Name, Cluster: b.cfg.Cluster, Clock: b.clock, Liveness: b.cfg.Liveness, Log: b.log,
		Topics: b.topics, Groups: b.groups, Offsets: b.offsets, Host: popHost{b}, RetryV2: b.cfg.RetryTopicV2,
	})
}

// MayRead implements pop.Host.
func (h popHost) MayRead() string {
	if h.b.cfg.Permission&wire.PermRead == 0 {
		return "the broker[" + h.b.addr + "] may not be read from at present"
	}
	return ""
}

// Filter implements pop.Host. As in Apache a POP may filter by SQL92 whatever
// enablePropertyFilter says.
func (h popHost) Filter(expr, exprType []byte) (pop.Filter, int32, string) {
	if len(expr) == 0 || string(expr) == filter.All && isTag(string(exprType)) {
		return nil, 0, ""
	}
	f := &pullFilter{}
	if isTag(string(exprType)) {
		tags, err := filter.Parse(string(expr))
		if err != nil {
			return nil, wire.RespSubscriptionParseFailed, err.Error()
		}
		f.tags = tags
		return f, 0, ""
	}
	e, remark := h.b.compile(expr, exprType)
	if e == nil {
		return nil, wire.RespSubscriptionParseFailed, remark
	}
	f.sql = e
	return f, 0, ""
}

// Group implements pop.Host.
func (h popHost) Group(name []byte) *wire.SubscriptionGroup {
	g, created := h.b.groups.Get(name)
	if created {
		h.b.saveGroups()
	}
	return g
}

// RetryTopic implements pop.Host.
func (h popHost) RetryTopic(name string) *topics.Topic {
	return h.b.createTopic(name, 1, wire.PermRead|wire.PermWrite, 0)
}

// DeadLetters implements pop.Host.
func (h popHost) DeadLetters(group string) *topics.Topic { return h.b.deadLetters(group) }

// CountPut implements pop.Host.
func (h popHost) CountPut(res store.PutResult) {
	if res.Status.Stored() {
		h.b.stats.put(1, res.End-res.PhyOffset)
	} else {
		h.b.stats.putFailed.Add(1)
	}
}

// CountGot implements pop.Host.
func (h popHost) CountGot(n, bytes int64) { h.b.stats.got(n, bytes) }
