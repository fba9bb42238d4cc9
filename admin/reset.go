package admin

import (
	"context"
	"errors"
	"fmt"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/bridge"
	"github.com/gorocketmq/rocketmq/internal/client"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// QueueOffset is where a group goes on with a queue.
type QueueOffset struct {
	Queue  rocketmq.Queue
	Offset int64
}

// ResetOffset has a group go on elsewhere in a topic, be it back or forwards,
// online or not, and returns where. It is DefaultMQAdminExt.resetOffsetByTimestamp
// of Apache, forced.
//
// Brokers from 5.2 on, and this module's, note the place and tell the members
// with their next pull. Others push it to the members that are online; if none
// is, it is committed here. [rocketmq.Earliest], [rocketmq.StrictLatest] (which
// [rocketmq.Latest] is here, too) and [rocketmq.AtTime] are for all queues.
// [rocketmq.AtOffset] has to lie in each queue of the topic; brokers that only
// push cannot do that while the group is online, which is
// [rocketmq.ErrUnsupported].
//
// It returns when the brokers have noted it; members follow within seconds. A
// group that has never committed anything has no place that a broker which
// pushes could move.
func (a *Client) ResetOffset(ctx context.Context, group, topic string, to rocketmq.Position) ([]QueueOffset, error) {
	rt, err := a.runtime()
	if err != nil {
		return nil, err
	}
	if to.Kind() == rocketmq.PositionUnset {
		return nil, fmt.Errorf("%w: no position to reset to", rocketmq.ErrInvalidOption)
	}
	s := &resetting{rt: rt, group: rt.Wrap(group), topic: rt.Wrap(topic), public: topic, to: to}
	r, err := a.route(ctx, rt, s.topic)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, broker := range r.BrokerNames() {
		var ids []int32
		for _, q := range r.Readable {
			if q.Broker == broker {
				ids = append(ids, q.ID)
			}
		}
		if len(ids) == 0 {
			continue
		}
		addr, err := master(r, broker)
		if err == nil {
			err = s.broker(ctx, broker, addr, ids)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("reset of group %s, topic %s at broker %s: %w", group, topic, broker, err))
		}
	}
	return s.done, errors.Join(errs...)
}

// resetting is one call of ResetOffset.
type resetting struct {
	rt                   *client.Runtime
	group, topic, public string
	to                   rocketmq.Position
	done                 []QueueOffset
}

func (s *resetting) queue(broker string, id int32) rocketmq.Queue {
	return rocketmq.Queue{Topic: s.public, Broker: broker, ID: int(id)}
}

// timestamp is what the position is to INVOKE_BROKER_TO_RESET_OFFSET.
func (s *resetting) timestamp() int64 {
	switch s.to.Kind() {
	case rocketmq.PositionEarliest:
		return 0
	case rocketmq.PositionTime:
		return max(s.to.Time().UnixMilli(), 0) // what is negative is the end
	}
	return -1
}

func (s *resetting) broker(ctx context.Context, broker, addr string, ids []int32) error {
	if s.to.Kind() != rocketmq.PositionOffset {
		table, err := s.ask(ctx, addr, &wire.ResetOffsetRequest{Topic: s.topic, Group: s.group, Timestamp: s.timestamp(), Force: true})
		if refused(err, rocketmq.CodeConsumerNotOnline) {
			return s.commitAll(ctx, broker, addr, ids)
		}
		for _, id := range ids {
			if off, ok := table[wire.MessageQueue{Topic: s.topic, Broker: broker, QueueID: id}]; ok {
				s.done = append(s.done, QueueOffset{s.queue(broker, id), off})
			}
		}
		return err
	}
	for _, id := range ids {
		q := wire.MessageQueue{Topic: s.topic, Broker: broker, QueueID: id}
		// A broker that knows no explicit offset takes this for a reset to the
		// end that is not forced, which moves nothing.
		table, err := s.ask(ctx, addr, &wire.ResetOffsetRequest{
			Topic: s.topic, Group: s.group, Timestamp: -1, OneQueue: true, QueueID: id, Offset: s.to.Offset(),
		})
		if refused(err, rocketmq.CodeConsumerNotOnline) {
			return s.commitAll(ctx, broker, addr, ids)
		}
		if err == nil && table[q] != s.to.Offset() {
			err = fmt.Errorf("the broker resets by time only while members are online: %w", rocketmq.ErrUnsupported)
		}
		if err != nil {
			return fmt.Errorf("queue %d: %w", id, err)
		}
		s.done = append(s.done, QueueOffset{s.queue(broker, id), s.to.Offset()})
	}
	return nil
}

// ask sends INVOKE_BROKER_TO_RESET_OFFSET.
func (s *resetting) ask(ctx context.Context, addr string, h *wire.ResetOffsetRequest) (map[wire.MessageQueue]int64, error) {
	f, err := s.rt.Call(ctx, addr, &wire.Command{Code: wire.ReqInvokeBrokerToResetOffset, Ext: h})
	if err != nil {
		return nil, bridge.PublicError(err)
	}
	table, err := wire.DecodeOffsetTable(f.Body)
	return table.Offsets, err
}

// commitAll moves the offsets of a group that is not online, in the group's
// name.
func (s *resetting) commitAll(ctx context.Context, broker, addr string, ids []int32) error {
	for _, id := range ids {
		off, err := s.target(ctx, addr, id)
		if err == nil {
			err = call(ctx, s.rt, addr, wire.ReqUpdateConsumerOffset,
				&wire.UpdateOffsetRequest{Group: s.group, Topic: s.topic, QueueID: id, Offset: off}, nil)
		}
		if err != nil {
			return fmt.Errorf("queue %d: %w", id, err)
		}
		s.done = append(s.done, QueueOffset{s.queue(broker, id), off})
	}
	return nil
}

// target is where the position lies in a queue.
func (s *resetting) target(ctx context.Context, addr string, id int32) (int64, error) {
	switch s.to.Kind() {
	case rocketmq.PositionEarliest:
		return queueEnd(ctx, s.rt, addr, s.topic, id, wire.ReqGetMinOffset)
	case rocketmq.PositionTime:
		var h wire.OffsetResponse
		err := call(ctx, s.rt, addr, wire.ReqSearchOffsetByTimestamp,
			&wire.SearchOffsetRequest{Topic: s.topic, QueueID: id, Timestamp: s.timestamp()}, &h)
		return h.Offset, err
	}
	high, err := queueEnd(ctx, s.rt, addr, s.topic, id, wire.ReqGetMaxOffset)
	if err != nil || s.to.Kind() != rocketmq.PositionOffset {
		return high, err
	}
	low, err := queueEnd(ctx, s.rt, addr, s.topic, id, wire.ReqGetMinOffset)
	if off := s.to.Offset(); err == nil && (off < low || off > high) {
		return 0, &rocketmq.OffsetError{Queue: rocketmq.Queue{Topic: s.public, ID: int(id)}, Asked: off, Min: low, Max: high}
	}
	return s.to.Offset(), err
}
