package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/bridge"
	"github.com/gorocketmq/rocketmq/internal/client"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Dead letters are ordinary messages of the topic %DLQ%group. One that is sent
// again is copied to %RETRY%group, where only its group gets it, with the
// attempts counted from the start. The dead letter itself stays until it is
// cleaned away with its log.

// toolsGroup is the group that Apache's administration tools read with; brokers
// have it from the start.
const toolsGroup = "TOOLS_CONSUMER"

// innerProducer is the group of sends that no producer of an application makes.
const innerProducer = "CLIENT_INNER_PRODUCER"

const (
	resendBatch = 32
	// resendLimit is the number of retries that a copy may have had; it has had
	// none. Brokers want to hear it, because 0 retries may be a group's maximum.
	resendLimit = 16
)

// ResendResult is a dead letter that its group gets again.
type ResendResult struct {
	ID       string         // the message's, see rocketmq.MessageView.ID
	OriginID string         // the place where it was first stored, as an offset id
	Topic    string         // the topic that it was sent to
	Queue    rocketmq.Queue // of the dead letter
	Offset   int64
}

// Resend has a group's dead letters handled by the group once more. They come
// as retries do, that is, with their original topic, keys, tag and ids, and with
// attempt 1. Other groups of the topic do not see them.
//
// With ids it sends the messages of these ids: the message's own, the one of its
// first place (ORIGIN_MESSAGE_ID), or the dead letter's offset id. An id that
// occurs several times is sent once. Ids that are not among the dead letters are
// reported as [rocketmq.ErrNotFound]. The topic of dead letters is read from its
// beginning for that.
//
// Without ids it sends those that came since it last did so, oldest first. How
// far it has come is kept at the brokers, as the group's offset of the topic of
// dead letters. After a failure call it again: a message may then come twice.
//
// A group that never had a dead letter is [rocketmq.ErrTopicNotFound]. A group
// that consumes in order has to be stopped if the broker is Apache's: as long as
// a member holds a lock, 5.x buries at once whatever is sent to the group.
// Resend notices and stops.
//
// Apache's dashboard resends with CONSUME_MESSAGE_DIRECTLY, which needs a member
// online and retries nothing; this needs none.
func (a *Client) Resend(ctx context.Context, group string, ids ...string) ([]ResendResult, error) {
	rt, err := a.runtime()
	if err != nil {
		return nil, err
	}
	s := &resending{rt: rt, group: rt.Wrap(group)}
	s.topic = wire.DLQTopic(s.group)
	if s.route, err = a.route(ctx, rt, s.topic); err != nil {
		return nil, err
	}
	if len(ids) > 0 {
		err = s.some(ctx, ids)
	} else {
		err = s.all(ctx)
	}
	if err != nil {
		err = fmt.Errorf("resend of dead letters of group %s: %w", group, err)
	}
	return s.done, err
}

// resending is one call of Resend.
type resending struct {
	rt           *client.Runtime
	route        *client.Route
	group, topic string // on the wire
	done         []ResendResult
}

// letter is a dead letter, and owns its memory.
type letter struct {
	rec  wire.Record
	addr string
	q    client.Queue
}

// errBuried ends the whole: it would be the same with the next letter.
var errBuried = errors.New("the broker put it back to the dead letters, because members of the group hold locks of queues: stop the group's ordered consumers first")

// errNoOrigin is a message that never was a retry.
var errNoOrigin = errors.New("the dead letter does not say which topic it was sent to")

// all sends what is new.
func (s *resending) all(ctx context.Context) error {
	var errs []error
	for _, q := range s.route.Readable {
		if err := s.queue(ctx, q); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (s *resending) queue(ctx context.Context, q client.Queue) error {
	addr, err := master(s.route, q.Broker)
	if err != nil {
		return err
	}
	var stored wire.OffsetResponse
	err = call(ctx, s.rt, addr, wire.ReqQueryConsumerOffset,
		&wire.QueryOffsetRequest{Group: s.group, Topic: s.topic, QueueID: q.ID, HasSetZero: true}, &stored)
	if err != nil && !refused(err, rocketmq.CodeQueryNotFound) {
		return err
	}
	var errs []error // of single letters
	at := stored.Offset
	err = s.read(ctx, addr, q, at, func(page []letter, next int64) error {
		for i := range page {
			switch err := s.send(ctx, &page[i]); {
			case errors.Is(err, errNoOrigin):
				errs = append(errs, err)
			case err != nil:
				return errors.Join(err, s.commit(ctx, addr, q, at))
			}
			at = page[i].rec.QueueOffset + 1
		}
		at = next
		return s.commit(ctx, addr, q, at)
	})
	return errors.Join(append(errs, err)...)
}

func (s *resending) commit(ctx context.Context, addr string, q client.Queue, at int64) error {
	return call(ctx, s.rt, addr, wire.ReqUpdateConsumerOffset,
		&wire.UpdateOffsetRequest{Group: s.group, Topic: s.topic, QueueID: q.ID, Offset: at}, nil)
}

// some sends the letters of ids, of each the last.
func (s *resending) some(ctx context.Context, ids []string) error {
	found := map[string]*letter{}
	var errs []error
	for _, q := range s.route.Readable {
		addr, err := master(s.route, q.Broker)
		if err == nil {
			err = s.read(ctx, addr, q, 0, func(page []letter, _ int64) error {
				for i := range page {
					for _, id := range page[i].ids() {
						if slices.Contains(ids, id) {
							found[id] = &page[i]
							break
						}
					}
				}
				return nil
			})
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	sent := map[*letter]bool{} // by another of its ids
	for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
		l := found[id]
		if l == nil {
			errs = append(errs, fmt.Errorf("message %s: %w", id, rocketmq.ErrNotFound))
			continue
		}
		if sent[l] {
			continue
		}
		sent[l] = true
		if err := s.send(ctx, l); err != nil {
			errs = append(errs, err)
			if errors.Is(err, errBuried) {
				break
			}
		}
	}
	return errors.Join(errs...)
}

// ids are the ids of a letter that are not empty.
func (l *letter) ids() []string {
	p := l.rec.Properties
	ids := []string{p.Text(wire.PropUniqKey), p.Text(wire.PropOriginMessageID), string(wire.AppendOffsetMsgID(nil, l.rec.StoreHost, l.rec.PhyOffset))}
	return slices.DeleteFunc(ids, func(id string) bool { return id == "" })
}

// read calls f for what a queue has from an offset to its present end.
func (s *resending) read(ctx context.Context, addr string, q client.Queue, from int64, f func(page []letter, next int64) error) error {
	end, err := queueEnd(ctx, s.rt, addr, s.topic, q.ID, wire.ReqGetMaxOffset)
	for err == nil && from < end {
		var page []letter
		before := from
		if page, from, err = s.page(ctx, addr, q, from); err != nil {
			break
		}
		page = slices.DeleteFunc(page, func(l letter) bool { return l.rec.QueueOffset >= end })
		if from <= before {
			err = fmt.Errorf("queue %d of %s does not go on behind offset %d", q.ID, s.topic, before)
			break
		}
		err = f(page, min(from, end))
	}
	return err
}

// page pulls the letters that follow an offset.
func (s *resending) page(ctx context.Context, addr string, q client.Queue, from int64) (page []letter, next int64, err error) {
	conn, err := s.rt.Conn(ctx, addr)
	if err != nil {
		return nil, from, bridge.PublicError(err)
	}
	f, err := conn.Call(ctx, &wire.Command{Code: wire.ReqPullMessage, Ext: &wire.PullRequest{
		Group: []byte(toolsGroup), Topic: []byte(s.topic), QueueID: q.ID, Offset: from, MaxMsgs: resendBatch,
		SysFlag: wire.PullSubscription, Subscription: []byte("*"),
	}})
	if err != nil {
		return nil, from, bridge.PublicError(err)
	}
	switch f.Code {
	case wire.RespSuccess, wire.RespPullNotFound, wire.RespPullRetryImmediately, wire.RespPullOffsetMoved:
	default:
		return nil, from, &rocketmq.BrokerError{Op: "PULL_MESSAGE", Addr: addr, Code: rocketmq.Code(f.Code), Remark: string(f.Remark)}
	}
	var h wire.PullResponse
	if err := h.DecodeExt(f); err != nil {
		return nil, from, err
	}
	for b := f.Body; len(b) > 0; {
		l := letter{addr: addr, q: q}
		n, err := wire.DecodeRecord(b, &l.rec)
		if err != nil {
			return nil, from, fmt.Errorf("dead letters at offset %d: %w", from, err)
		}
		b = b[n:]
		page = append(page, l)
	}
	return page, h.NextOffset, nil
}

// notCopied are properties that belong to the dead letter and not to its copy:
// what the broker sets, what delayed it, and what its last attempt left.
var notCopied = []string{
	wire.PropOriginMessageID, wire.PropDelay, wire.PropReconsumeTime, wire.PropMaxReconsumeTimes, wire.PropTranMsg, wire.PropRealTopic,
	wire.PropRealQueueID, wire.PropWait, wire.PropPopCK, wire.PropCluster, wire.PropMsgRegion, wire.PropTraceOn,
	wire.PropTimerDelaySec, wire.PropTimerDelayMs, wire.PropTimerDeliverMs, wire.PropTimerOutMs, wire.PropTimerEnqueueMs,
	wire.PropTimerDequeueMs, wire.PropTimerRollTimes, wire.PropTimerDelUniqKey, wire.PropTimerDelayLevel,
}

// send copies one letter to the retry topic of its own broker.
func (s *resending) send(ctx context.Context, l *letter) error {
	rec := &l.rec
	where := fmt.Sprintf("dead letter at offset %d of broker %s", rec.QueueOffset, l.q.Broker)
	topic := rec.Properties.Text(wire.PropRetryTopic)
	if topic == "" || strings.HasPrefix(topic, wire.RetryPrefix) {
		return fmt.Errorf("%s: %w", where, errNoOrigin)
	}
	origin := rec.Properties.Text(wire.PropOriginMessageID)
	if origin == "" {
		origin = string(wire.AppendOffsetMsgID(nil, rec.StoreHost, rec.PhyOffset))
	}
	p := rec.Properties.Without(nil, notCopied...)
	p = wire.AppendProperty(p, wire.PropOriginMessageID, origin)
	p = wire.AppendProperty(p, wire.PropWait, "true") // it is looked at below
	flag := rec.SysFlag & wire.SysCompressed
	if flag != 0 {
		flag = rec.SysFlag & (wire.SysCompressed | wire.SysCompressionMask)
	}
	var res wire.SendResponse
	f, err := s.rt.Call(ctx, l.addr, &wire.Command{Code: wire.ReqSendMessageV2, Body: rec.Body, Ext: &wire.SendRequest{
		Group: []byte(innerProducer), Topic: []byte(wire.RetryTopic(s.group)), DefaultTopic: []byte(wire.TopicDefault), DefaultTopicQueues: 4,
		SysFlag: flag, BornTime: rec.BornTime, Flag: rec.Flag, Properties: p, MaxReconsumeTimes: resendLimit,
	}})
	if err == nil {
		err = res.DecodeExt(f)
	}
	if err = bridge.PublicError(err); err == nil {
		err = s.check(ctx, l.addr, string(res.OffsetMsgID))
	} else if errors.Is(err, rocketmq.ErrNotDurable) {
		err = nil // stored, as far as that can be known
	}
	if err != nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	s.done = append(s.done, ResendResult{
		ID: rec.Properties.Text(wire.PropUniqKey), OriginID: origin, Topic: s.rt.Unwrap(topic),
		Queue: rocketmq.Queue{Topic: s.rt.Unwrap(s.topic), Broker: l.q.Broker, ID: int(l.q.ID)}, Offset: rec.QueueOffset,
	})
	return nil
}

// check looks where a broker has put the copy.
func (s *resending) check(ctx context.Context, addr, id string) error {
	_, phy, err := wire.ParseOffsetMsgID(id)
	if err != nil {
		return err
	}
	f, err := s.rt.Call(ctx, addr, &wire.Command{Code: wire.ReqViewMessageByID, Ext: &wire.ViewMessageRequest{Offset: phy}})
	if err != nil {
		return bridge.PublicError(err)
	}
	var rec wire.Record
	if _, err := wire.DecodeRecord(f.Body, &rec); err != nil {
		return err
	}
	if string(rec.Topic) == s.topic {
		return errBuried
	}
	return nil
}
