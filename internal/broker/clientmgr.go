package broker

import (
	"context"
	"errors"
	"time"

	"github.com/gorocketmq/rocketmq/internal/broker/clients"
	"github.com/gorocketmq/rocketmq/internal/filter"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Clients: HEART_BEAT (34), UNREGISTER_CLIENT (35), GET_CONSUMER_LIST_BY_GROUP
// (38), CHECK_CLIENT_CONFIG (46); sends NOTIFY_CONSUMER_IDS_CHANGED (40).
//
// Read: the bodies of 34 and 46, the fields of 35 and 38.
//
// Answers: 0, to 34 with IS_SUPPORT_HEART_BEAT_V2 and IS_SUB_CHANGE, to 38 with
// the list; 1 malformed, 38: nobody there, 46: SQL filter while those are off;
// 23 46: bad expression.
//
// These run on the connection's reader, so that a client's heartbeat counts
// before what it sends next, and before the end of its connection. Unlike
// Apache the list of 38 has an id only once, however many connections say so,
// and is sorted.

func (b *Broker) handleHeartbeat(r *remoting.Request) {
	f := r.Frame()
	hb, err := wire.DecodeHeartbeat(f.Body)
	if malformed(r, err) {
		return
	}
	if hb.ClientID == "" {
		r.Reply(wire.RespSystemError, "heartbeat has no clientID", nil, nil)
		return
	}
	c := clients.Client{ID: hb.ClientID, Conn: r.Conn(), Language: f.Language, Version: f.Version}
	changed, made := false, false
	for i := range hb.Consumers {
		ch, m := b.consumerHeartbeat(&hb.Consumers[i], c, hb.WithoutSub)
		changed, made = changed || ch, made || m
	}
	for _, group := range hb.Producers {
		b.clients.Producer(group, c)
		b.trans.Joined(group)
	}
	resp := &wire.HeartbeatResponse{V2: true, SubChanged: changed || !hb.WithoutSub}
	if made {
		later := r.Replier()
		if b.bg.Go(func(ctx context.Context) {
			ctx, cancel := context.WithTimeout(ctx, announceTimeout)
			defer cancel()
			b.registrar.wait(ctx)
			later.Reply(wire.RespSuccess, "", resp, nil)
		}) {
			return
		}
	}
	r.Reply(wire.RespSuccess, "", resp, nil)
}

// announceTimeout bounds how long a heartbeat waits for the name servers.
const announceTimeout = time.Second

// consumerHeartbeat tells whether it changed the group, and whether it made the
// group's retry topic.
func (b *Broker) consumerHeartbeat(d *wire.ConsumerData, c clients.Client, keepSubs bool) (changed, made bool) {
	g, created := b.groups.Get([]byte(d.Group))
	if created {
		b.saveGroups()
	}
	if g == nil {
		return false, false // as in 5.x; its pulls are told
	}
	if name := wire.RetryTopic(d.Group); g.RetryQueues > 0 && b.topics.Lookup(name) == nil {
		b.createTopic(name, g.RetryQueues, wire.PermRead|wire.PermWrite, unitSub(d.UnitMode))
		made = true
	}
	ch, changed := b.clients.Consumer(*d, c, keepSubs)
	if changed && d.Model != wire.Broadcasting {
		b.notify(ch)
	}
	return changed, made
}

// notify tells the members of a group to share out the queues anew. It never
// blocks; a member that cannot be told finds out at its next rebalance.
func (b *Broker) notify(ch clients.Change) {
	if len(ch.Notify) == 0 || !b.cfg.NotifyChanges {
		return
	}
	if g := b.groups.Lookup(ch.Group); g != nil && !g.NotifyConsumerIDsChanged {
		return
	}
	cmd := &wire.Command{Code: wire.ReqNotifyConsumerIdsChanged, Ext: &wire.GroupRequest{Group: ch.Group}}
	for _, c := range ch.Notify {
		if err := c.(*remoting.Conn).CallOneway(cmd); err != nil {
			b.log.Debug("member not notified", "group", ch.Group, "addr", c.Remote(), "err", err)
		}
	}
}

func (b *Broker) handleUnregister(r *remoting.Request) {
	var req wire.UnregisterClientRequest
	if malformed(r, req.DecodeExt(r.Frame())) {
		return
	}
	if req.ProducerGroup != "" {
		b.clients.RemoveProducer(req.ProducerGroup, r.Conn())
	}
	if req.ConsumerGroup != "" {
		b.gone(b.clients.RemoveConsumer(req.ConsumerGroup, r.Conn()))
	}
	r.Reply(wire.RespSuccess, "", nil, nil)
}

// gone notifies those who are left in a group.
func (b *Broker) gone(ch clients.Change, removed bool) {
	if g, ok := b.clients.Group(ch.Group); removed && ok && !g.Broadcasting() {
		b.notify(ch)
	}
}

// disconnected is called once when a client's connection has ended.
func (b *Broker) disconnected(c *remoting.Conn, _ error) {
	b.polls.drop(c)
	b.pop.Disconnected(c)
	for _, ch := range b.clients.RemoveConn(c) {
		b.gone(ch, true)
	}
	b.trans.Gone(c)
}

// expireClients drops the clients that have been silent for too long.
func (b *Broker) expireClients() {
	dead, changes := b.clients.Expire(b.cfg.ClientExpiry)
	for _, c := range dead {
		b.log.Info("client expired", "addr", c.Remote())
		c.(*remoting.Conn).Close(errExpired)
	}
	for _, ch := range changes {
		b.gone(ch, true)
	}
}

func (b *Broker) handleConsumerList(r *remoting.Request) {
	var req wire.GroupRequest
	if malformed(r, req.DecodeExt(r.Frame())) {
		return
	}
	ids := b.clients.ConsumerIDs(req.Group)
	if len(ids) == 0 {
		r.Reply(wire.RespSystemError, "no consumer for this group, "+req.Group, nil, nil)
		return
	}
	list := wire.ConsumerList{IDs: ids}
	r.Reply(wire.RespSuccess, "", nil, list.AppendJSON(nil))
}

func (b *Broker) handleCheckClient(r *remoting.Request) {
	body, err := wire.DecodeCheckClientConfigBody(r.Frame().Body)
	if malformed(r, err) {
		return
	}
	s := body.Subscription
	if isTag(s.ExprType) {
		_, err = filter.Parse(s.Expr)
	} else if !b.cfg.PropertyFilter {
		r.Reply(wire.RespSystemError, noSQL(s.ExprType), nil, nil)
		return
	} else if e, remark := b.compile([]byte(s.Expr), []byte(s.ExprType)); e == nil {
		err = errors.New(remark)
	}
	if err != nil {
		r.Reply(wire.RespSubscriptionParseFailed, err.Error(), nil, nil)
		return
	}
	r.Reply(wire.RespSuccess, "", nil, nil)
}
