package consumer_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/vnet"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// fake is a name server and a broker "b" that do as a test tells them. They
// live on an in-memory network, so a test may run in a synctest bubble.
type fake struct {
	tb  testing.TB
	net vnet.Network
	srv *remoting.Server

	mu        sync.Mutex // guards all below
	topics    map[string]*fakeTopic
	offsets   map[wire.MessageQueue]int64 // of the one group of a test
	commits   []wire.UpdateOffsetRequest
	members   map[*remoting.Conn]string
	beats     []wire.Heartbeat
	left      []string
	queries   []wire.QueryOffsetRequest
	pulls     []wire.PullRequest // slices not valid
	sendBacks []wire.SendBackRequest
	sends     []fakeSend
	locks     map[wire.MessageQueue]fakeLock
	lockCalls []fakeLockCall
	other     []int32 // codes of all other requests
	deny      map[int32]func(r *remoting.Request) bool
	polls     []*poll
	arrived   func() // called for each message that is put, if set; with mu
}

type fakeTopic struct {
	queues [][]fakeMessage
	min    []int64
}

type fakeMessage struct {
	offset int64
	record []byte
	tag    string
	stored int64 // ms
}

type poll struct {
	queue   wire.MessageQueue
	from    int64
	reply   remoting.Replier
	suggest int64 // broker id
}

const (
	fakeNameServer = "ns:9876"
	fakeBroker     = "broker:10911"
)

func newFake(tb testing.TB) *fake {
	tb.Helper()
	f := &fake{
		tb: tb, topics: map[string]*fakeTopic{}, offsets: map[wire.MessageQueue]int64{},
		members: map[*remoting.Conn]string{}, locks: map[wire.MessageQueue]fakeLock{}, deny: map[int32]func(*remoting.Request) bool{},
	}
	f.srv = remoting.NewServer(remoting.ServerConfig{Config: remoting.Config{Handler: f.serve, OnClose: f.closed}})
	for _, addr := range []string{fakeNameServer, fakeBroker} {
		ln, err := f.net.Listen(addr)
		require.NoError(tb, err)
		require.NoError(tb, f.srv.Serve(ln))
	}
	tb.Cleanup(f.close)
	return f
}

func (f *fake) close() { _ = f.srv.Close(context.Background()) }

// client is a client of the fake, closed with the test.
func (f *fake) client(opts ...rocketmq.Option) *rocketmq.Client {
	f.tb.Helper()
	cl, err := rocketmq.NewClient(append([]rocketmq.Option{
		rocketmq.WithNameServers(fakeNameServer), rocketmq.WithDialer(f.net.Dial),
	}, opts...)...)
	require.NoError(f.tb, err)
	f.tb.Cleanup(func() { _ = cl.Close(context.Background()) })
	return cl
}

func (f *fake) topic(name string, queues int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.topics[name] = &fakeTopic{queues: make([][]fakeMessage, queues), min: make([]int64, queues)}
}

// on has a function look at each request of a code first; true means that it
// has dealt with it.
func (f *fake) on(code int32, h func(r *remoting.Request) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.deny[code] = h
}

type putOption func(*wire.Record)

func withProps(kv ...string) putOption {
	return func(r *wire.Record) {
		for i := 0; i < len(kv); i += 2 {
			r.Properties = wire.AppendProperty(r.Properties, kv[i], kv[i+1])
		}
	}
}

// put stores one message and answers the pulls that wait for it.
func (f *fake) put(topic string, queue int, body string, opts ...putOption) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.topics[topic]
	q := t.queues[queue]
	off := t.min[queue]
	if n := len(q); n > 0 {
		off = q[n-1].offset + 1
	}
	r := wire.Record{
		QueueID: int32(queue), QueueOffset: off, PhyOffset: 1000*int64(queue) + off, BornTime: 1700000000000, StoreTime: time.Now().UnixMilli(),
		BornHost: netip.MustParseAddrPort("10.0.0.1:1234"), StoreHost: netip.MustParseAddrPort("10.0.0.2:10911"),
		Topic: []byte(topic), Body: []byte(body),
	}
	for _, o := range opts {
		o(&r)
	}
	tag, _ := r.Properties.Lookup(wire.PropTags)
	t.queues[queue] = append(q, fakeMessage{off, wire.AppendRecord(nil, &r), string(tag), r.StoreTime})
	f.answerPollsLocked()
	if f.arrived != nil {
		f.arrived()
	}
	return off
}

func (f *fake) answerPollsLocked() {
	f.polls = slices.DeleteFunc(f.polls, func(p *poll) bool {
		code, h, body := f.lookLocked(p.queue, p.from)
		if code != wire.RespSuccess {
			return false
		}
		h.SuggestBrokerID = p.suggest
		p.reply.Reply(code, "", h, body)
		return true
	})
}

// lookLocked is what a pull finds: up to 32 messages.
func (f *fake) lookLocked(q wire.MessageQueue, from int64) (int32, *wire.PullResponse, []byte) {
	t := f.topics[q.Topic]
	if t == nil || int(q.QueueID) >= len(t.queues) {
		return wire.RespTopicNotExist, &wire.PullResponse{}, nil
	}
	msgs, low := t.queues[q.QueueID], t.min[q.QueueID]
	high := low + int64(len(msgs))
	h := &wire.PullResponse{NextOffset: from, MinOffset: low, MaxOffset: high}
	switch {
	case from < low:
		h.NextOffset = low
		return wire.RespPullOffsetMoved, h, nil
	case from > high:
		h.NextOffset = high
		return wire.RespPullOffsetMoved, h, nil
	}
	var body []byte
	for _, m := range msgs[from-low : min(from-low+32, int64(len(msgs)))] {
		body = append(body, m.record...)
		h.NextOffset = m.offset + 1
	}
	if body == nil {
		return wire.RespPullNotFound, h, nil
	}
	return wire.RespSuccess, h, body
}

// endPoll answers a pull for which nothing came.
func (f *fake) endPoll(p *poll) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if i := slices.Index(f.polls, p); i >= 0 {
		f.polls = slices.Delete(f.polls, i, i+1)
		code, h, body := f.lookLocked(p.queue, p.from)
		p.reply.Reply(code, "", h, body)
	}
}

func (f *fake) serve(r *remoting.Request) {
	f.mu.Lock()
	h := f.deny[r.Frame().Code]
	f.mu.Unlock()
	if h != nil && h(r) {
		return
	}
	switch r.Frame().Code {
	case wire.ReqGetRouteInfoByTopic:
		f.route(r)
	case wire.ReqHeartBeat:
		f.heartbeat(r)
	case wire.ReqGetConsumerListByGroup:
		f.list(r)
	case wire.ReqPullMessage:
		f.pull(r)
	case wire.ReqQueryConsumerOffset:
		f.query(r)
	case wire.ReqUpdateConsumerOffset:
		f.update(r)
	case wire.ReqGetMaxOffset, wire.ReqGetMinOffset, wire.ReqSearchOffsetByTimestamp:
		f.offset(r)
	case wire.ReqConsumerSendMsgBack:
		f.sendBack(r)
	case wire.ReqLockBatchMQ:
		f.lock(r)
	case wire.ReqUnlockBatchMQ:
		f.unlock(r)
	case wire.ReqSendMessageV2:
		f.send(r)
	case wire.ReqUnregisterClient:
		f.unregister(r)
	default:
		f.mu.Lock()
		f.other = append(f.other, r.Frame().Code)
		f.mu.Unlock()
		r.Reply(wire.RespRequestCodeNotSupported, "not scripted", nil, nil)
	}
}

func (f *fake) decode(r *remoting.Request, h interface{ DecodeExt(*wire.Frame) error }) bool {
	if err := h.DecodeExt(r.Frame()); err != nil {
		f.tb.Errorf("request %d: %v", r.Frame().Code, err)
		r.Reply(wire.RespSystemError, err.Error(), nil, nil)
		return false
	}
	return true
}

func (f *fake) route(r *remoting.Request) {
	var h wire.RouteRequest
	if !f.decode(r, &h) {
		return
	}
	f.mu.Lock()
	t, n := f.topics[h.Topic], int32(0)
	if t != nil {
		n = int32(len(t.queues))
	}
	f.mu.Unlock()
	if t == nil {
		r.Reply(wire.RespTopicNotExist, "No topic route info in name server for the topic: "+h.Topic, nil, nil)
		return
	}
	d := wire.RouteData{
		Queues:  []wire.QueueData{{BrokerName: "b", ReadQueues: n, WriteQueues: n, Perm: wire.PermRead | wire.PermWrite}},
		Brokers: []wire.BrokerData{{Cluster: "c", BrokerName: "b", Addrs: map[int64]string{0: fakeBroker}}},
	}
	r.Reply(wire.RespSuccess, "", nil, d.AppendStrictJSON(nil))
}

func (f *fake) heartbeat(r *remoting.Request) {
	hb, err := wire.DecodeHeartbeat(r.Frame().Body)
	if err != nil {
		f.tb.Errorf("heartbeat: %v", err)
	}
	f.mu.Lock()
	f.beats = append(f.beats, hb)
	known := f.members[r.Conn()] != ""
	if len(hb.Consumers) > 0 {
		f.members[r.Conn()] = hb.ClientID
	}
	f.mu.Unlock()
	r.Reply(wire.RespSuccess, "", &wire.HeartbeatResponse{}, nil)
	if !known && len(hb.Consumers) > 0 {
		f.notify(hb.Consumers[0].Group)
	}
}

// notify tells all members that the group has changed.
func (f *fake) notify(group string) {
	f.mu.Lock()
	var conns []*remoting.Conn
	for c := range f.members {
		conns = append(conns, c)
	}
	f.mu.Unlock()
	for _, c := range conns {
		_ = c.CallOneway(&wire.Command{Code: wire.ReqNotifyConsumerIdsChanged, Ext: &wire.GroupRequest{Group: group}})
	}
}

func (f *fake) closed(c *remoting.Conn, _ error) {
	f.mu.Lock()
	_, member := f.members[c]
	delete(f.members, c)
	f.mu.Unlock()
	if member {
		f.notify("G")
	}
}

func (f *fake) list(r *remoting.Request) {
	f.mu.Lock()
	var l wire.ConsumerList
	for _, id := range f.members {
		l.IDs = append(l.IDs, id)
	}
	f.mu.Unlock()
	if len(l.IDs) == 0 {
		r.Reply(wire.RespSystemError, "no consumer for this group", nil, nil)
		return
	}
	r.Reply(wire.RespSuccess, "", nil, l.AppendJSON(nil))
}

func (f *fake) pull(r *remoting.Request) {
	var h wire.PullRequest
	if !f.decode(r, &h) {
		return
	}
	q := wire.MessageQueue{Topic: string(h.Topic), Broker: "b", QueueID: h.QueueID}
	f.mu.Lock()
	defer f.mu.Unlock()
	if h.SysFlag&wire.PullCommitOffset != 0 {
		f.offsets[q] = h.CommitOffset
	}
	kept := h
	kept.Group, kept.Topic = bytes.Clone(h.Group), bytes.Clone(h.Topic)
	kept.Subscription, kept.ExpressionType, kept.BrokerName = nil, nil, nil
	f.pulls = append(f.pulls, kept)
	code, res, body := f.lookLocked(q, h.Offset)
	if code == wire.RespPullNotFound {
		p := &poll{queue: q, from: h.Offset, reply: r.Replier()}
		f.polls = append(f.polls, p)
		time.AfterFunc(time.Duration(h.SuspendMillis)*time.Millisecond, func() { f.endPoll(p) })
		return
	}
	r.Reply(code, "", res, body)
}

func (f *fake) query(r *remoting.Request) {
	var h wire.QueryOffsetRequest
	if !f.decode(r, &h) {
		return
	}
	f.mu.Lock()
	f.queries = append(f.queries, h)
	off, ok := f.offsets[wire.MessageQueue{Topic: h.Topic, Broker: "b", QueueID: h.QueueID}]
	young := false
	if t := f.topics[h.Topic]; t != nil && int(h.QueueID) < len(t.min) {
		young = t.min[h.QueueID] == 0
	}
	f.mu.Unlock()
	switch {
	case ok:
		r.Reply(wire.RespSuccess, "", &wire.OffsetResponse{Offset: off}, nil)
	case young && !(h.HasSetZero && !h.SetZero):
		r.Reply(wire.RespSuccess, "", &wire.OffsetResponse{}, nil)
	default:
		r.Reply(wire.RespQueryNotFound, "Not found, maybe this group consumer boot first", nil, nil)
	}
}

func (f *fake) update(r *remoting.Request) {
	var h wire.UpdateOffsetRequest
	if !f.decode(r, &h) {
		return
	}
	f.mu.Lock()
	f.commits = append(f.commits, h)
	f.offsets[wire.MessageQueue{Topic: h.Topic, Broker: "b", QueueID: h.QueueID}] = h.Offset
	f.mu.Unlock()
	r.Reply(wire.RespSuccess, "", nil, nil)
}

func (f *fake) offset(r *remoting.Request) {
	var h wire.SearchOffsetRequest
	if r.Frame().Code == wire.ReqSearchOffsetByTimestamp {
		if !f.decode(r, &h) {
			return
		}
	} else {
		var q wire.QueueRequest
		if !f.decode(r, &q) {
			return
		}
		h.Topic, h.QueueID = q.Topic, q.QueueID
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.other = append(f.other, r.Frame().Code)
	t := f.topics[h.Topic]
	msgs, off := t.queues[h.QueueID], t.min[h.QueueID]
	switch r.Frame().Code {
	case wire.ReqGetMaxOffset:
		off += int64(len(msgs))
	case wire.ReqSearchOffsetByTimestamp:
		for _, m := range msgs {
			if m.stored < h.Timestamp {
				off = m.offset + 1
			}
		}
	}
	r.Reply(wire.RespSuccess, "", &wire.OffsetResponse{Offset: off}, nil)
}

func (f *fake) sendBack(r *remoting.Request) {
	var h wire.SendBackRequest
	if !f.decode(r, &h) {
		return
	}
	f.mu.Lock()
	f.sendBacks = append(f.sendBacks, h)
	f.mu.Unlock()
	r.Reply(wire.RespSuccess, "", nil, nil)
}

func (f *fake) unregister(r *remoting.Request) {
	var h wire.UnregisterClientRequest
	if !f.decode(r, &h) {
		return
	}
	f.mu.Lock()
	f.left = append(f.left, h.ConsumerGroup)
	delete(f.members, r.Conn())
	f.mu.Unlock()
	r.Reply(wire.RespSuccess, "", nil, nil)
	f.notify(h.ConsumerGroup)
}

// stored is the group's offset of a queue, -1 for none.
func (f *fake) stored(topic string, queue int) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	off, ok := f.offsets[wire.MessageQueue{Topic: topic, Broker: "b", QueueID: int32(queue)}]
	if !ok {
		return -1
	}
	return off
}

// logRecords keeps what a client logs.
type logRecords struct {
	mu   sync.Mutex
	recs []slog.Record
}

func (l *logRecords) Enabled(context.Context, slog.Level) bool { return true }
func (l *logRecords) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *logRecords) WithGroup(string) slog.Handler            { return l }
func (l *logRecords) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.recs = append(l.recs, r.Clone())
	return nil
}

// with counts the records that have an attribute of that name.
func (l *logRecords) with(attr string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, r := range l.recs {
		r.Attrs(func(a slog.Attr) bool {
			if a.Key == attr {
				n++
			}
			return true
		})
	}
	return n
}
