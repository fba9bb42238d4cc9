package send

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/bridge"
	"github.com/gorocketmq/rocketmq/internal/client"
	"github.com/gorocketmq/rocketmq/internal/inflate"
	"github.com/gorocketmq/rocketmq/internal/run"
	"github.com/gorocketmq/rocketmq/internal/wire"
	"github.com/gorocketmq/rocketmq/selector"
)

// Config is what a [Pipeline] is made of.
type Config struct {
	Handle     *bridge.Handle
	Group      string
	Total      time.Duration          // for a send with all its attempts
	Attempt    time.Duration          // for one attempt
	Retries    int                    // attempts after the first
	Selector   selector.QueueSelector // nil: by sharding key, else in turn
	AutoCreate int                    // queues to ask for when a topic does not exist; 0: such sends fail
	WeakAck    bool                   // stored but not flushed or replicated in time is a success
	Avoidance  Avoidance

	Compression Compression

	// Window of asynchronous sends, and for how long and how many bytes they
	// are held back to be sent together; no time: not at all.
	Messages, Bytes int
	Linger          time.Duration
	LingerBytes     int

	// Hooks take the brokers' requests to the group.
	Hooks client.ProducerHooks

	// Observe, if not nil, is told the end of every send of a message.
	Observe func(o *Outcome)
}

// Options are those of one send. The zero value leaves all to the pipeline.
type Options struct {
	Queue    rocketmq.Queue // used if Fixed
	Fixed    bool
	Selector selector.QueueSelector // used if not nil and not Fixed
	Extra    wire.Properties        // further properties, encoded; not in batches
	SysFlag  int32                  // further flags; not in batches
	By       time.Time              // lowers the total timeout; zero: does not
}

// Outcome is the end of a send of one message.
type Outcome struct {
	Message *rocketmq.Message
	ID      string // unique id; "" if it did not get so far
	Result  Result // if it was stored
	Oneway  bool
	Addr    string // of the last broker
	Born    time.Time
	Took    time.Duration
	Region  string
	NoTrace bool // the broker wants no traces
	Err     error
}

// Pipeline sends the messages of one producer. All methods are safe for
// concurrent use.
type Pipeline struct {
	cfg    Config
	rt     *client.Runtime
	log    *slog.Logger
	hooks  []rocketmq.HookSend
	topics topics
	faults faults
	gate   gate

	group      []byte
	signer     wire.Signer
	encoding   wire.Encoding
	autoQueues int32

	register   sync.Once
	unregister func(ctx context.Context) error
	stopRoutes func()
	attempts   sync.Pool // *attempt
	packer     packer
	inflater   inflate.Inflater
	open       context.Context // ends when Close begins
	shut       context.CancelFunc

	// Of asynchronous sends.
	goroutines *run.Group
	window     window
	under      laps
	linger     *linger // nil: none
	helpers    *relay
	deliverer  *relay
	asyncs     sync.Pool // *async
}

// maxHelpers is how many asynchronous sends may be waited for at a time that
// cannot just be sent: without a route or connection, or after a failure.
const maxHelpers = 32

// New returns a pipeline. It does no I/O.
func New(cfg Config) *Pipeline {
	rt := cfg.Handle.Runtime
	p := &Pipeline{
		cfg:        cfg,
		rt:         rt,
		log:        cfg.Handle.Logger,
		group:      []byte(rt.Wrap(cfg.Group)),
		signer:     rt.Signer(),
		encoding:   rt.Encoding(),
		autoQueues: defaultTopicQueues,
	}
	if cfg.AutoCreate > 0 {
		p.autoQueues = int32(cfg.AutoCreate)
	}
	for _, h := range cfg.Handle.Hooks {
		if h, ok := h.(rocketmq.HookSend); ok {
			p.hooks = append(p.hooks, h)
		}
	}
	p.gate.init()
	p.open, p.shut = context.WithCancel(context.Background())
	p.attempts.New = func() any { return newAttempt(p) }
	p.packer.init(cfg.Compression)
	p.goroutines = run.NewGroup(context.Background())
	p.window.init(cfg.Messages, cfg.Bytes)
	p.under.init()
	if cfg.Linger > 0 {
		p.linger = newLinger(p, cfg.Linger, cfg.LingerBytes)
	}
	p.helpers = newRelay(p.goroutines, maxHelpers, 0, (*async).help)
	p.deliverer = newRelay(p.goroutines, 1, 1, (*async).deliver)
	p.asyncs.New = func() any { return &async{sending: sending{p: p}, a: newAttempt(p)} }
	p.stopRoutes = rt.OnRouteChange(func(topic string, _, _ *client.Route) { p.topics.outdated(topic) })
	return p
}

// defaultTopicQueues is what Java clients ask for (defaultTopicQueueNums).
const defaultTopicQueues = 4

// Send sends one message and waits for the answer, further attempts included.
func (p *Pipeline) Send(ctx context.Context, m *rocketmq.Message, o Options) (Result, error) {
	if !p.gate.enter() {
		return Result{}, rocketmq.ErrClosed
	}
	defer p.gate.leave()
	if err := m.Validate(); err != nil {
		return Result{}, err
	}
	s := sending{p: p, m: m, opts: o}
	s.begin(ctx, time.Now())
	a := p.attempts.Get().(*attempt)
	stored, err := s.run(ctx, a)
	var res Result
	if stored {
		res = a.result(s.last)
	}
	s.ended(ctx, m, a, 0, res, err)
	a.release()
	p.attempts.Put(a)
	return res, err
}

// ended tells hooks and traces how the send of m ended, the i-th message of the
// request in a.
func (s *sending) ended(ctx context.Context, m *rocketmq.Message, a *attempt, i int, res Result, err error) {
	p := s.p
	if p.hooks == nil && p.cfg.Observe == nil || s.start.IsZero() {
		return
	}
	id, took := res.MessageID, time.Since(s.start)
	if id == "" && len(a.ids) >= (i+1)*idLen {
		id = string(a.ids[i*idLen : (i+1)*idLen])
	}
	if p.hooks != nil {
		s.report(ctx, m, id, took, err)
	}
	if p.cfg.Observe != nil {
		p.cfg.Observe(&Outcome{
			Message: m, ID: id, Result: res, Oneway: a.flag&wire.FlagOneway != 0, Addr: s.r.addr,
			Born: s.start, Took: took, Region: string(a.region), NoTrace: a.noTrace, Err: err,
		})
	}
}

// Flush sends what is held back and waits until all asynchronous sends that
// came before it have ended and one-way messages are written.
func (p *Pipeline) Flush(ctx context.Context) error {
	if p.linger != nil {
		p.linger.flush()
	}
	if err := p.under.wait(ctx); err != nil {
		return fmt.Errorf("producer: flush: %w", err)
	}
	return p.rt.FlushOutput(ctx)
}

// Queues are the queues a message to topic can go to, in the order selectors
// get them.
func (p *Pipeline) Queues(ctx context.Context, topic string) ([]rocketmq.Queue, error) {
	if !p.gate.enter() {
		return nil, rocketmq.ErrClosed
	}
	defer p.gate.leave()
	ctx, cancel := context.WithTimeout(ctx, p.cfg.Total)
	defer cancel()
	_, tb, err := p.table(ctx, topic)
	if err != nil {
		return nil, err
	}
	return append([]rocketmq.Queue(nil), tb.queues...), nil
}

// Close lets no new sends in, waits for those under way and leaves the
// producer group. Requests that wait for their reply end at once. When ctx ends
// first, sends under way go on to their own deadline.
func (p *Pipeline) Close(ctx context.Context) error {
	p.gate.shut()
	p.shut()
	if p.linger != nil {
		p.linger.flush()
	}
	err := p.gate.wait(ctx)
	if err == nil {
		err = p.rt.FlushOutput(ctx)
	}
	p.goroutines.Cancel(nil)
	if err == nil {
		err = p.goroutines.WaitContext(ctx)
	}
	p.stopRoutes()
	p.register.Do(func() {}) // never registered: nothing to undo
	if p.unregister != nil {
		err = errors.Join(err, bridge.PublicError(p.unregister(ctx)))
	}
	return err
}

// announce makes the producer's group known to brokers, with the first send.
func (p *Pipeline) announce() {
	p.register.Do(func() {
		p.unregister = p.rt.RegisterProducer(string(p.group), p.cfg.Hooks)
	})
}
