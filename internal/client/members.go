package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

// members are the groups this client takes part in.
type members struct {
	mu        sync.Mutex // guards all below
	producers map[string][]*ProducerHooks
	consumers map[string]Consumer
	version   uint64 // grows when a group comes, which brokers have to hear of
}

// membership is who is here at one moment.
type membership struct {
	version   uint64
	producers []string
	consumers []Consumer
}

func (m membership) empty() bool { return len(m.producers)+len(m.consumers) == 0 }

// RegisterProducer announces a producer of group. Brokers learn it with a
// heartbeat that is sent soon, in the background. A group may have several
// producers; each is unregistered by the function returned.
func (r *Runtime) RegisterProducer(group string, h ProducerHooks) (unregister func(ctx context.Context) error) {
	m, hooks := &r.members, &h
	m.mu.Lock()
	if m.producers == nil {
		m.producers = make(map[string][]*ProducerHooks)
	}
	m.producers[group] = append(m.producers[group], hooks)
	first := len(m.producers[group]) == 1
	if first {
		m.version++
	}
	m.mu.Unlock()
	if first {
		r.beats.kick()
		r.start()
	}
	return func(ctx context.Context) error { return r.unregisterProducer(ctx, group, hooks) }
}

func (r *Runtime) unregisterProducer(ctx context.Context, group string, hooks *ProducerHooks) error {
	m := &r.members
	m.mu.Lock()
	list := m.producers[group]
	i := slices.Index(list, hooks)
	if i < 0 {
		m.mu.Unlock()
		return nil
	}
	list = slices.Delete(slices.Clone(list), i, i+1)
	if len(list) > 0 {
		m.producers[group] = list
		m.mu.Unlock()
		return nil
	}
	delete(m.producers, group)
	m.mu.Unlock()
	return r.leave(ctx, wire.UnregisterClientRequest{ClientID: r.id, ProducerGroup: group})
}

// RegisterConsumer announces a member of a consumer group. Brokers learn it
// with the next heartbeat: one is sent soon in the background, or at once with
// [Runtime.HeartbeatNow]. A second member of the group is [ErrGroupTaken].
func (r *Runtime) RegisterConsumer(c Consumer) error {
	if r.closed() {
		return ErrClosed
	}
	m, group := &r.members, c.Group()
	m.mu.Lock()
	if m.consumers == nil {
		m.consumers = make(map[string]Consumer)
	}
	_, taken := m.consumers[group]
	if !taken {
		m.consumers[group] = c
		m.version++
	}
	m.mu.Unlock()
	if taken {
		return fmt.Errorf("group %q: %w", group, ErrGroupTaken)
	}
	r.beats.kick()
	r.start()
	return nil
}

// UnregisterConsumer tells the brokers that this client leaves the group.
func (r *Runtime) UnregisterConsumer(ctx context.Context, group string) error {
	m := &r.members
	m.mu.Lock()
	_, ok := m.consumers[group]
	delete(m.consumers, group)
	m.mu.Unlock()
	if !ok {
		return nil
	}
	return r.leave(ctx, wire.UnregisterClientRequest{ClientID: r.id, ConsumerGroup: group})
}

func (m *members) consumer(group string) Consumer {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.consumers[group]
}

// producer is one of the producers of the group, of those that are in
// transactions if there is one.
func (m *members) producer(group string) *ProducerHooks {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := m.producers[group]
	for _, p := range list {
		if p.CheckTransaction != nil {
			return p
		}
	}
	if len(list) > 0 {
		return list[0]
	}
	return nil
}

func (m *members) snapshot() membership {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := membership{version: m.version}
	for g := range m.producers {
		now.producers = append(now.producers, g)
	}
	for _, c := range m.consumers {
		now.consumers = append(now.consumers, c)
	}
	return now
}

func (m *members) current() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.version
}

// has reports whether what a request wants to unregister is here (again).
func (m *members) has(req *wire.UnregisterClientRequest) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, consumer := m.consumers[req.ConsumerGroup]
	return consumer || len(m.producers[req.ProducerGroup]) > 0
}

// leave sends code 35 to every broker that got a heartbeat over a connection
// that still lives; the others have forgotten this client with its connection.
// The group is not in the table of members any more, so what is under way when
// a broker's turn comes is over, and what follows does not name the group.
func (r *Runtime) leave(ctx context.Context, req wire.UnregisterClientRequest) error {
	return r.beats.each(ctx, func(ctx context.Context, addr string, l *link) error {
		return r.leaveOne(ctx, addr, l, &req)
	})
}

func (r *Runtime) leaveOne(ctx context.Context, addr string, l *link, req *wire.UnregisterClientRequest) error {
	turn := l.takeTurn(ctx)
	if turn == nil {
		defer l.endTurn()
	}
	c, confirmed := r.beats.last(l)
	if c == nil || r.members.has(req) {
		return nil // forgotten, or somebody new has joined in the same name
	}
	cmd := &wire.Command{Code: wire.ReqUnregisterClient, Ext: req}
	var f *wire.Frame
	var err error
	switch {
	case turn != nil:
		err = errors.Join(fmt.Errorf("behind a heartbeat: %w", turn), c.CallOneway(cmd))
	case confirmed:
		f, err = c.Call(ctx, cmd)
	default:
		// It may or may not have taken the last heartbeat; it is told, but
		// not waited for once more.
		err = c.CallOneway(cmd)
	}
	switch {
	case errors.Is(err, ErrConnection):
		return nil
	case err != nil:
		return fmt.Errorf("unregister at %s: %w", addr, err)
	case f != nil && f.Code != wire.RespSuccess:
		return &ResponseError{opName(wire.ReqUnregisterClient), addr, f.Code, string(f.Remark)}
	}
	return nil
}

// leaveAll unregisters what is still registered.
func (r *Runtime) leaveAll(ctx context.Context) error {
	now := r.members.snapshot()
	var errs []error
	for _, c := range now.consumers {
		errs = append(errs, r.UnregisterConsumer(ctx, c.Group()))
	}
	for _, g := range now.producers {
		r.members.mu.Lock()
		delete(r.members.producers, g)
		r.members.mu.Unlock()
		errs = append(errs, r.leave(ctx, wire.UnregisterClientRequest{ClientID: r.id, ProducerGroup: g}))
	}
	return errors.Join(errs...)
}

// Members are the client ids of a consumer group, as a broker of the topic
// knows them. An empty list is not an error.
func (r *Runtime) Members(ctx context.Context, group, topic string) ([]string, error) {
	rt, err := r.Route(ctx, topic)
	if err != nil {
		return nil, err
	}
	err = fmt.Errorf("topic %q has no broker", topic)
	for _, name := range rt.BrokerNames() {
		addr := rt.Brokers[name].Any(MasterID)
		var f *wire.Frame
		f, err = r.Exchange(ctx, addr, &wire.Command{Code: wire.ReqGetConsumerListByGroup, Ext: &wire.GroupRequest{Group: group}})
		switch {
		case err != nil && ctx.Err() != nil:
			return nil, err
		case err != nil:
			continue // the next broker knows them as well
		case f.Code == wire.RespSystemError:
			return nil, nil // "no consumer for this group"
		case f.Code != wire.RespSuccess:
			return nil, &ResponseError{opName(wire.ReqGetConsumerListByGroup), addr, f.Code, string(f.Remark)}
		}
		list, err := wire.DecodeConsumerList(f.Body)
		return list.IDs, err
	}
	return nil, err
}
