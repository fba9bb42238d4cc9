package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// members are the groups this client takes part in.
type members struct {
	mu        sync.Mutex // guards all below
	producers map[string][]*ProducerHooks
	consumers map[string]Consumer
}

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
	m.mu.Unlock()
	if first {
		r.beats.kick(true)
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
	}
	m.mu.Unlock()
	if taken {
		return fmt.Errorf("group %q: %w", group, ErrGroupTaken)
	}
	r.beats.kick(true)
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

// any is one of the producers of the group, or of any if group is "".
func (m *members) producer(group string) *ProducerHooks {
	m.mu.Lock()
	defer m.mu.Unlock()
	if group == "" {
		for _, list := range m.producers {
			return list[0]
		}
		return nil
	}
	if list := m.producers[group]; len(list) > 0 {
		return list[0]
	}
	return nil
}

func (m *members) snapshot() (producers []string, consumers []Consumer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for g := range m.producers {
		producers = append(producers, g)
	}
	for _, c := range m.consumers {
		consumers = append(consumers, c)
	}
	return producers, consumers
}

// leave sends code 35 to every broker that got a heartbeat over a connection
// that still lives; the others have forgotten this client with its connection.
func (r *Runtime) leave(ctx context.Context, req wire.UnregisterClientRequest) error {
	return r.beats.each(ctx, func(ctx context.Context, addr string, c *remoting.Conn) error {
		f, err := c.Call(ctx, &wire.Command{Code: wire.ReqUnregisterClient, Ext: &req})
		switch {
		case err != nil && errors.Is(err, ErrConnection):
			return nil
		case err != nil:
			return fmt.Errorf("unregister at %s: %w", addr, err)
		case f.Code != wire.RespSuccess:
			return &ResponseError{opName(wire.ReqUnregisterClient), addr, f.Code, string(f.Remark)}
		}
		return nil
	})
}

// leaveAll unregisters what is still registered.
func (r *Runtime) leaveAll(ctx context.Context) error {
	producers, consumers := r.members.snapshot()
	var errs []error
	for _, c := range consumers {
		errs = append(errs, r.UnregisterConsumer(ctx, c.Group()))
	}
	for _, g := range producers {
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
		f, err = r.exchange(ctx, addr, &wire.Command{Code: wire.ReqGetConsumerListByGroup, Ext: &wire.GroupRequest{Group: group}})
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
