// Package trans is a broker's transactions, TransactionalMessageService of
// Apache's broker.
//
// A message sent in a transaction is stored as a half message: one of the half
// topic, which nobody consumes (half.go). The producer decides with
// END_TRANSACTION (end.go): committed, the message is put to where it was sent;
// in both cases an op record says that the half message is done with
// (oprecord.go). What is undecided for too long is asked about: a check goes to
// some producer of the group (check.go). All that is left of it is in the log:
// the half queue, less what the op queue lists, is what is undecided, and a
// broker that starts reads it from there (load.go).
//
// What is undecided is kept in memory, in one table (table.go). One goroutine
// reads new half messages, checks and copies; whoever carries out a request
// decides.
package trans

import (
	"container/heap"
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorocketmq/rocketmq/internal/broker/offsets"
	"github.com/gorocketmq/rocketmq/internal/broker/rounds"
	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/run"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Group is the consumer group whose offsets of the half and the op topic say
// how far they are done with.
const Group = wire.SystemGroupPrefix + "TRANS"

// Config is what a [Service] is made of. Functions are called without locks.
type Config struct {
	Clock   clock.Clock
	Log     *slog.Logger
	Host    netip.AddrPort // of this broker
	Offsets *offsets.Table

	Timeout  time.Duration // transactionTimeOut: not asked about before
	Interval time.Duration // transactionCheckInterval: nor again before
	Max      int32         // transactionCheckMax: given up after as many checks
	Reserved time.Duration // fileReservedTime: given up at that age in any case

	// OpInterval and OpSize are transactionOpBatchInterval and
	// transactionOpMsgMaxSize: for how long, and up to how many bytes, op records
	// are collected. No interval: each is written at once, and before it the
	// transaction is not decided.
	OpInterval time.Duration
	OpSize     int

	// Put stores a message, as store.Put does.
	Put func(m *store.Message, w store.Waiter) (store.PutResult, bool)
	// Park makes a committed message that is delayed one that waits.
	Park func(m *store.Message)
	// Ask hands a question to a producer of the group, and tells which one, see
	// [Service.Gone]. It does not block. Busy means that one is there, but cannot
	// take it now.
	Ask func(group string, q *Question) (asked Asked, whom any)
	// GiveUp makes sure that the topic of what is given up is there.
	GiveUp func()
}

// Asked is what became of a question.
type Asked uint8

// The outcomes.
const (
	NoProducer Asked = iota
	Busy
	Sent
)

// Service is the transactions of one broker. All methods are safe for
// concurrent use, but Start and Stop are called by one goroutine at a time.
type Service struct {
	cfg   Config
	store *store.Store
	work  atomic.Pointer[rounds.Work] // nil: stopped
	tasks *run.Group
	timer clock.Timer // the goroutine's own
	sent  atomic.Int64

	table
	batch    opBatch
	progress progress

	nextMu sync.Mutex // guards the two below; a leaf
	next   time.Time  // when a check is due as far as is known; zero: none
}

// New returns a service that is stopped.
func New(cfg Config) *Service {
	s := &Service{cfg: cfg}
	s.free.L = &s.mu
	s.reset()
	return s
}

// Start reads what is undecided from the log, and begins to check it. Requests
// must not come before.
func (s *Service) Start(ctx context.Context, st *store.Store) error {
	if s.work.Load() != nil {
		return nil
	}
	s.store = st
	if err := s.load(ctx); err != nil {
		return err
	}
	w := rounds.New()
	s.tasks = run.NewGroup(context.Background())
	s.work.Store(w)
	w.Ask()
	s.tasks.Go(func(ctx context.Context) { s.run(ctx, w) })
	return nil
}

// Stop ends the service and waits for its goroutine. flush writes the op
// records that are collected, as long as the store takes them.
func (s *Service) Stop(flush bool) {
	if s.work.Swap(nil) == nil {
		return
	}
	s.tasks.Stop()
	if flush {
		s.writeBatch(true)
		s.advance()
	}
}

// ask has the goroutine do a round.
func (s *Service) ask() (*rounds.Work, uint64) {
	if w := s.work.Load(); w != nil {
		return w, w.Ask()
	}
	return nil, 0
}

// Arrived is told of each record that can be read from the half topic. It does
// not block.
func (s *Service) Arrived() { s.ask() }

// Tick is called every second or so: for what no timer is set for.
func (s *Service) Tick() {
	if s.progress.waits() {
		s.ask()
	}
}

// Joined is told of each producer that comes to a group, and of each of its
// heartbeats. What is due and had nobody to be asked is asked at once.
func (s *Service) Joined(group string) {
	s.mu.Lock()
	g := s.groups[group]
	if g == nil || g.waiting == 0 {
		s.mu.Unlock()
		return
	}
	now := s.now()
	for _, e := range s.byOffset {
		if e.group == g && e.waiting {
			s.setWaiting(e, false)
			e.due = now
		}
	}
	heap.Init(&s.due)
	s.mu.Unlock()
	s.ask()
}

// Gone is told of the end of who may have been asked: there will be no answer.
func (s *Service) Gone(whom any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked == 0 {
		return
	}
	for _, e := range s.byOffset {
		if e.asked == whom {
			s.answered(e)
		}
	}
}

// Settle blocks until what was stored before has been seen and the checks that
// are due are on their way.
func (s *Service) Settle(ctx context.Context) error {
	w, seq := s.ask()
	if w == nil {
		return nil
	}
	return w.Wait(ctx, seq)
}

// CheckNow asks about all that is undecided, whatever its time, and returns how
// many checks were sent.
func (s *Service) CheckNow(ctx context.Context) (int, error) {
	if err := s.Settle(ctx); err != nil {
		return 0, err
	}
	before := s.sent.Load()
	s.mu.Lock()
	now := s.now()
	for _, e := range s.byOffset {
		e.due = min(e.due, now)
	}
	heap.Init(&s.due)
	s.mu.Unlock()
	err := s.Settle(ctx)
	return int(s.sent.Load() - before), err
}

// NextCheck is when the next transaction is looked at; false if there is none.
// It is right after [Service.Settle].
func (s *Service) NextCheck() (time.Time, bool) {
	s.nextMu.Lock()
	defer s.nextMu.Unlock()
	return s.next, !s.next.IsZero()
}

// Undecided is how many transactions are not decided, as far as they have been
// seen.
func (s *Service) Undecided() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.byOffset)
}

// AwaitAnswers blocks until no check is on its way. Producers need not answer.
func (s *Service) AwaitAnswers(ctx context.Context) error {
	s.mu.Lock()
	if s.asked == 0 {
		s.mu.Unlock()
		return nil
	}
	if s.quiet == nil {
		s.quiet = make(chan struct{})
	}
	quiet := s.quiet
	s.mu.Unlock()
	select {
	case <-quiet:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *Service) now() int64 { return s.cfg.Clock.Now().UnixMilli() }

// run is the goroutine.
func (s *Service) run(ctx context.Context, w *rounds.Work) {
	defer func() {
		if s.timer != nil {
			s.timer.Stop()
		}
		w.Close()
	}()
	if s.inheritedAny() {
		// What the log says of their outcome is found through the index.
		_ = s.store.WaitIndexed(ctx)
	}
	for {
		select {
		case <-w.Wake():
		case <-ctx.Done():
			return
		}
		seq := w.Begin()
		s.readHalves()
		s.writeBatch(false)
		s.checkDue(ctx)
		s.renew(ctx)
		s.advance()
		s.sleep(ctx, w)
		w.End(seq)
	}
}

// sleep sets the timer to when there is something to do next.
func (s *Service) sleep(ctx context.Context, w *rounds.Work) {
	s.mu.Lock()
	check := int64(0)
	if len(s.due) > 0 {
		check = s.due[0].due
	}
	s.mu.Unlock()
	s.nextMu.Lock()
	s.next = time.Time{}
	if check != 0 {
		s.next = time.UnixMilli(check)
	}
	s.nextMu.Unlock()
	next := check
	if at := s.batch.due(); at != 0 && (next == 0 || at < next) {
		next = at
	}
	if next == 0 || ctx.Err() != nil {
		return
	}
	at := time.UnixMilli(next)
	for {
		now := s.cfg.Clock.Now()
		if !at.After(now) {
			w.Ask() // it has become due meanwhile
			return
		}
		if s.timer == nil {
			s.timer = s.cfg.Clock.AfterFunc(at.Sub(now), s.Arrived)
		} else {
			s.timer.Reset(at.Sub(now))
		}
		if s.cfg.Clock.Now().Sub(now) < time.Millisecond {
			return // else a clock that is moved by hand has been moved meanwhile
		}
	}
}
