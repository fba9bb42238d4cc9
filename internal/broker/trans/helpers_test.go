package trans

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/broker/offsets"
	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

var (
	testStart = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	host      = netip.MustParseAddrPort("127.0.0.1:10911")
)

// rig is a service over a store in memory, in a process that can die.
type rig struct {
	t      testing.TB
	clock  *clock.Manual
	sc     store.Config
	change func(*Config)
	store  *store.Store
	s      *Service
	table  *offsets.Table
	saved  []byte // what is on disk of table

	mu        sync.Mutex // guards all below
	producers map[string]Asked
	questions []*Question
	puts      int
	dieAt     int // the process dies with this put; 0: it does not
	dead      bool
	refuse    func(m *store.Message) bool
}

func newRig(t testing.TB, change func(*Config), sc ...func(*store.Config)) *rig {
	t.Helper()
	r := &rig{t: t, clock: clock.NewManual(testStart), change: change, producers: map[string]Asked{"PG": Sent}}
	r.sc = store.Config{
		Dir: "store", FS: mfile.NewMemory(), Clock: r.clock, CommitLogFileSize: 4 << 20, ConsumeQueueFileSize: 6000, StoreHost: host,
		FlushLeastPages: 1, IndexSlots: 1000, IndexEntries: 4000, DiskUsage: func(string) (float64, error) { return 0, nil },
	}
	r.sc.OnArrival = func(a store.Arrival) {
		if string(a.Topic) == wire.TopicHalf {
			r.s.Arrived()
		}
	}
	for _, f := range sc {
		f(&r.sc)
	}
	r.start()
	t.Cleanup(r.kill)
	return r
}

func (r *rig) start() {
	r.t.Helper()
	r.dead = false
	r.table = offsets.New(r.clock)
	if r.saved != nil {
		require.NoError(r.t, r.table.Decode(r.saved))
	}
	cfg := Config{
		Clock: r.clock, Log: slog.New(slog.DiscardHandler), Host: host, Offsets: r.table,
		Timeout: 6 * time.Second, Interval: 30 * time.Second, Max: 15, Reserved: 72 * time.Hour, OpSize: 4096,
		Put: r.put, Park: func(*store.Message) {}, Ask: r.ask, GiveUp: func() {},
	}
	if r.change != nil {
		r.change(&cfg)
	}
	r.s = New(cfg)
	st, err := store.Open(r.sc)
	require.NoError(r.t, err)
	r.store = st
	require.NoError(r.t, r.s.Start(r.t.Context(), st))
}

func (r *rig) save() { r.saved = r.table.Encode() }

// kill ends the process; restart is a new one on the same files.
func (r *rig) kill() {
	r.s.Stop(false)
	r.store.Abandon()
}

func (r *rig) restart() {
	r.t.Helper()
	r.kill()
	r.start()
}

func (r *rig) put(m *store.Message, w store.Waiter) (store.PutResult, bool) {
	r.mu.Lock()
	refuse := r.dead || r.refuse != nil && r.refuse(m)
	if r.puts++; r.puts == r.dieAt {
		r.dead = true
	}
	r.mu.Unlock()
	if refuse {
		return store.PutResult{Status: store.ServiceNotAvailable, Err: errors.New("refused")}, false
	}
	return r.store.Put(m, w)
}

func (r *rig) ask(group string, q *Question) (Asked, any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.producers[group]
	if a == Sent && !r.dead {
		r.questions = append(r.questions, q)
	}
	return a, group
}

// taken are the questions since the last call.
func (r *rig) taken() []*Question {
	r.mu.Lock()
	defer r.mu.Unlock()
	q := r.questions
	r.questions = nil
	return q
}

func (r *rig) set(group string, a Asked) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.producers[group] = a
}

// half stores a half message and returns the request that would end it.
func (r *rig) half(id string, props ...string) *wire.EndTransactionRequest {
	r.t.Helper()
	var p []byte
	p = wire.AppendProperty(p, wire.PropTranMsg, "true")
	p = wire.AppendProperty(p, wire.PropProducerGroup, "PG")
	p = wire.AppendProperty(p, wire.PropUniqKey, id)
	for i := 0; i < len(props); i += 2 {
		p = wire.AppendProperty(p, props[i], props[i+1])
	}
	m := &store.Message{
		Topic: []byte(wire.TopicHalf), Body: []byte(id), BornTime: r.clock.Now().UnixMilli(), BornHost: host,
		Properties: AppendHalf(nil, p, []byte(id), []byte("T"), 0),
	}
	res, _ := r.put(m, nil)
	if !r.isDead() {
		require.NoError(r.t, res.Err)
	}
	return &wire.EndTransactionRequest{Group: "PG", TranStateOffset: res.QueueOffset, CommitLogOffset: res.PhyOffset, MsgID: id}
}

// flush brings the log to the disk, and has the offsets moved.
func (r *rig) flush() {
	r.t.Helper()
	r.settle()
	end := r.store.Stats().MaxPhy
	require.Eventually(r.t, func() bool {
		r.clock.Advance(100 * time.Millisecond)
		return r.store.FlushedTo() >= end
	}, 30*time.Second, time.Millisecond)
	r.s.Tick()
	r.settle()
}

func (r *rig) isDead() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dead
}

// ended is how a request was answered.
type ended struct {
	code   int32
	remark string
}

// end asks for an end and waits for the answer.
func (r *rig) end(req *wire.EndTransactionRequest, what int32) ended {
	r.t.Helper()
	x := *req
	x.CommitOrRollback = what
	ch := make(chan ended, 1)
	r.s.End(&x, func(code int32, remark string) { ch <- ended{code, remark} })
	if what == 0 {
		return ended{}
	}
	return <-ch
}

func (r *rig) commit(req *wire.EndTransactionRequest) {
	r.t.Helper()
	require.Equal(r.t, ended{}, r.end(req, wire.SysTranCommit))
}

func (r *rig) rollback(req *wire.EndTransactionRequest) {
	r.t.Helper()
	require.Equal(r.t, ended{}, r.end(req, wire.SysTranRollback))
}

// reply answers a question.
func (r *rig) reply(q *Question, what int32) ended {
	r.t.Helper()
	return r.end(requestOf(q), what)
}

func requestOf(q *Question) *wire.EndTransactionRequest {
	return &wire.EndTransactionRequest{
		Group: "PG", TranStateOffset: q.Header.TranStateOffset, CommitLogOffset: q.Header.CommitLogOffset, FromCheck: true,
		MsgID: q.Header.MsgID, TransactionID: q.Header.TransactionID,
	}
}

func (r *rig) settle() {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	require.NoError(r.t, r.store.WaitDispatched(ctx))
	require.NoError(r.t, r.s.Settle(ctx))
	require.NoError(r.t, r.store.WaitDispatched(ctx))
}

// pass lets time pass, from one thing to do to the next.
func (r *rig) pass(d time.Duration) {
	r.t.Helper()
	to := r.clock.Now().Add(d)
	for {
		r.settle()
		at, ok := r.s.NextCheck()
		if !ok || at.After(to) {
			break
		}
		r.clock.Advance(at.Sub(r.clock.Now()))
	}
	r.clock.Advance(to.Sub(r.clock.Now()))
	r.settle()
}

// records are all records of a topic's queue 0.
func (r *rig) records(topic string) []wire.Record {
	r.t.Helper()
	r.settle()
	var out []wire.Record
	for at := r.store.MinOffset(topic, 0); at < r.store.MaxOffset(topic, 0); at++ {
		_, u, ok := r.store.NextUnit(topic, 0, at)
		require.True(r.t, ok)
		b, ok := r.store.ViewMessage(nil, u.Phy)
		require.True(r.t, ok)
		var rec wire.Record
		_, err := wire.DecodeRecord(b, &rec)
		require.NoError(r.t, err)
		out = append(out, rec)
	}
	return out
}

func (r *rig) bodies(topic string) (out []string) {
	r.t.Helper()
	for _, rec := range r.records(topic) {
		out = append(out, string(rec.Body))
	}
	return out
}

func ids(q []*Question) (out []string) {
	for _, x := range q {
		out = append(out, x.Header.MsgID)
	}
	return out
}

func name(i int) string { return "tx-" + strconv.Itoa(i) }

// expired is a context whose time is over.
func expired() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}
