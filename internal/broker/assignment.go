package broker

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/gorocketmq/rocketmq/internal/alloc"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Assignments that the broker makes for clients, and whether groups pop or pull:
// QUERY_ASSIGNMENT (400), SET_MESSAGE_REQUEST_MODE (401),
// GET_ALL_MESSAGE_REQUEST_MODE (402). Read are the bodies of 400 and 401.
//
// Answers: 0, to 400 without a list if none can be made: the client keeps what it
// has; 1 malformed body; 401: 16 retry topic, 17 no topic, 26 no group, 29 no mode.
// 401 answers once the mode is saved.
//
// A member of a group that pops gets the queue -1 of each broker, unless the
// group shares only so many members' queues. Strategies are AVG and
// AVG_BY_CIRCLE; for others no list can be made.

// routeTimeout bounds how long an assignment waits for a name server.
const routeTimeout = 3 * time.Second

func (b *Broker) handleQueryAssignment(r *remoting.Request) {
	req, err := wire.DecodeAssignmentRequest(r.Frame().Body)
	if malformed(r, err) {
		return
	}
	mode := b.modes.Get(req.Topic, req.Group)
	queues, ok := b.assign(&req, &mode)
	list := wire.Assignments{Known: ok}
	for _, q := range queues {
		mq := wire.MessageQueue{Topic: q.Topic, Broker: q.Broker, QueueID: int32(q.ID)}
		if !slices.ContainsFunc(list.List, func(a wire.Assignment) bool { return a.Queue == mq }) {
			list.List = append(list.List, wire.Assignment{Queue: mq, Mode: mode.Mode})
		}
	}
	r.Reply(wire.RespSuccess, "", nil, list.AppendJSON(nil))
}

// assign divides the queues of a topic. It is false if that is not possible now.
func (b *Broker) assign(req *wire.AssignmentRequest, mode *wire.RequestMode) ([]alloc.Queue, bool) {
	queues := b.topicQueues(req.Topic)
	if queues == nil || req.Model == wire.Broadcasting {
		return queues, queues != nil
	}
	members := b.clients.ConsumerIDs(req.Group)
	if len(members) == 0 {
		return nil, false
	}
	alloc.SortMembers(members)
	alloc.SortQueues(queues)
	share := int(mode.ShareQueues)
	switch {
	case mode.Mode != wire.ModePop:
		return divide(req.Strategy, req.ClientID, members, queues)
	case share <= 0 || share >= len(members)-1:
		for i := range queues {
			queues[i].ID = -1
		}
		return queues, true
	case len(members) > len(queues):
		i := slices.Index(members, req.ClientID)
		if i < 0 {
			return []alloc.Queue{}, true
		}
		return queues[i%len(queues):][:1], true
	}
	own, ok := divide(req.Strategy, req.ClientID, members, queues)
	at := slices.Index(members, req.ClientID)
	for i := 1; ok && at >= 0 && i <= share; i++ {
		var more []alloc.Queue
		more, ok = divide(req.Strategy, members[(at+i)%len(members)], members, queues)
		own = append(own, more...)
	}
	return own, ok
}

// divide is one member's part.
func divide(strategy, self string, members []string, queues []alloc.Queue) ([]alloc.Queue, bool) {
	if alloc.Check(self, members, queues) != nil {
		return nil, false
	}
	switch strategy {
	case "AVG":
		return alloc.Averagely(self, members, queues), true
	case "AVG_BY_CIRCLE":
		return alloc.ByCircle(self, members, queues), true
	}
	return nil, false
}

// topicQueues are the queues of a topic that can be read, of all brokers that
// the name servers know; of this one alone if no name server can be asked. Nil:
// there is no such topic.
func (b *Broker) topicQueues(topic string) []alloc.Queue {
	ctx, cancel := context.WithTimeout(b.bg.Context(), routeTimeout)
	defer cancel()
	for _, s := range b.registrar.servers {
		f, err := b.registrar.pool.Call(ctx, s.addr, &wire.Command{Code: wire.ReqGetRouteInfoByTopic, Ext: &wire.RouteRequest{Topic: topic}})
		if err == nil && f.Code == wire.RespTopicNotExist {
			return nil
		}
		var route wire.RouteData
		if err == nil {
			if f.Code != wire.RespSuccess {
				err = fmt.Errorf("code %d: %s", f.Code, f.Remark)
			} else {
				route, err = wire.DecodeRouteData(f.Body)
			}
		}
		if err != nil {
			b.log.Debug("route for an assignment not found", "topic", topic, "addr", s.addr, "err", err)
			continue
		}
		var queues []alloc.Queue
		for _, d := range route.Queues {
			queues = appendQueues(queues, topic, d.BrokerName, d.ReadQueues, d.Perm)
		}
		return queues
	}
	if t := b.topics.Lookup(topic); t != nil {
		return appendQueues(nil, topic, b.cfg.Name, t.ReadQueues, t.Perm)
	}
	return nil
}

func appendQueues(list []alloc.Queue, topic, broker string, n, perm int32) []alloc.Queue {
	if perm&wire.PermRead == 0 {
		return list
	}
	for id := range n {
		list = append(list, alloc.Queue{Topic: topic, Broker: broker, ID: int(id)})
	}
	return list
}

func (b *Broker) handleSetRequestMode(r *remoting.Request) {
	mode, err := wire.DecodeRequestMode(r.Frame().Body)
	if malformed(r, err) {
		return
	}
	switch {
	case wire.IsRetryTopic(mode.Topic):
		r.Reply(wire.RespNoPermission, "retry topic is not allowed to set mode", nil, nil)
	case b.topics.Lookup(mode.Topic) == nil:
		r.Reply(wire.RespTopicNotExist, "topic["+mode.Topic+"] not exist", nil, nil)
	case popHost{b}.Group([]byte(mode.Group)) == nil:
		r.Reply(wire.RespSubscriptionGroupNotExist, "subscription group does not exist", nil, nil)
	case mode.Mode != wire.ModePull && mode.Mode != wire.ModePop:
		r.Reply(wire.RespInvalidParameter, "mode "+mode.Mode+" is not known: PULL or POP", nil, nil)
	default:
		b.modes.Set(mode)
		ctx, cancel := context.WithTimeout(b.bg.Context(), settleTimeout)
		defer cancel()
		_ = b.saver.modes.Wait(ctx, b.saver.modes.Ask())
		r.Reply(wire.RespSuccess, "", nil, nil)
	}
}

func (b *Broker) handleRequestModes(r *remoting.Request) {
	r.Reply(wire.RespSuccess, "", nil, b.modes.Encode())
}
