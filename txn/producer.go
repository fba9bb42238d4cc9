package txn

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
	"github.com/gorocketmq/rocketmq/internal/run"
	"github.com/gorocketmq/rocketmq/internal/send"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Checker tells the outcome of a local transaction that the broker has not heard
// of, maybe of another process of the group. half is the message; its
// TransactionID, which is its ID, too, is what [Tx.ID] was.
//
// An error, a panic, and [Unknown] have the broker ask again later. Calls are
// concurrent, see [WithCheckConcurrency], and may come while the transaction is
// still running here: what cannot be seen yet is Unknown as long as it may
// still come. ctx ends after [WithCheckTimeout], and when the producer is
// closed in a hurry.
type Checker func(ctx context.Context, half *rocketmq.MessageView) (State, error)

// Producer sends messages in transactions. All methods are safe for concurrent
// use.
type Producer struct {
	cfg    config
	rt     *client.Runtime
	pipe   *send.Pipeline
	log    *slog.Logger
	checks *checks
	inside inside
	tasks  *run.Group // makes the group known

	release  func()
	closing  sync.Once
	closeErr error
}

// NewProducer returns a producer of a group on c, which will close it if it is
// still open then. All producers of a group must be able to answer for each
// other's transactions. Brokers are told of the producer at once, in the
// background, so that they can ask. Bad options are all reported at once, as
// rocketmq.ErrInvalidOption.
func NewProducer(c *rocketmq.Client, group string, check Checker, opts ...Option) (*Producer, error) {
	h := bridge.Of(c)
	if h == nil {
		return nil, errors.New("txn: the client is nil")
	}
	cfg := defaultConfig()
	cfg.group = group
	for _, o := range opts {
		if o != nil {
			o(&cfg)
		}
	}
	if err := cfg.validate(check); err != nil {
		return nil, err
	}
	p := &Producer{cfg: cfg, rt: h.Runtime, log: h.Logger.With("producerGroup", group), tasks: run.NewGroup(context.Background())}
	p.inside.init()
	p.checks = newChecks(p, check)
	p.pipe = send.New(send.Config{
		Handle: h, Group: group, Total: cfg.total, Attempt: cfg.attempt, Retries: cfg.retries, Selector: cfg.selector,
		Avoidance:   send.DefaultAvoidance(),
		Compression: send.Compression{Codec: send.ZLIB, Level: 5, Threshold: 4 << 10},
		Messages:    1, Bytes: 1, // no asynchronous sends
		Hooks: client.ProducerHooks{CheckTransaction: p.checks.arrived},
	})
	release, err := h.Adopt(p.end)
	if err != nil {
		return nil, fmt.Errorf("txn: %w", errors.Join(err, p.end(context.Background())))
	}
	p.release = release
	p.pipe.Announce()
	p.tasks.Go(p.introduce)
	return p, nil
}

// introduce finds the brokers that may ask. Heartbeats go to those of all known
// routes.
func (p *Producer) introduce(ctx context.Context) {
	var topics []string
	for _, t := range p.cfg.topics {
		topics = append(topics, p.rt.Wrap(t))
	}
	if topics == nil {
		topics = []string{wire.TopicHalf}
	}
	for pause := 500 * time.Millisecond; ; pause = min(2*pause, client.DefaultRouteRefresh) {
		var left []string
		for _, t := range topics {
			if _, err := p.rt.Route(ctx, t); err != nil {
				p.log.Debug("route of a topic that may have transactions", "topic", t, "err", err)
				left = append(left, t)
			}
		}
		if topics = left; len(topics) == 0 {
			return
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// Send sends m, runs the local transaction, and tells the broker its outcome.
// local is called on the caller's goroutine, once the half message is stored,
// and not at all if it could not be. Its context is ctx.
//
// What local returns decides: Commit delivers the message, Rollback drops it,
// and Unknown leaves the decision to a check. Commit together with an error is
// taken for Unknown. The broker is told also if ctx has ended meanwhile. If
// local panics that is Unknown, and the panic goes on.
//
// The error joins that of local and, if the broker could not be told, or did
// not confirm, why. In that case the broker asks the [Checker] later, and
// Result.State is Unknown: the local transaction stands, and so will its
// message. Without a half message the Result is empty and the errors are those
// of producer.Send; rocketmq.ErrNotDurable, too, is an error here.
func (p *Producer) Send(ctx context.Context, m *rocketmq.Message, local func(ctx context.Context, tx *Tx) (State, error)) (Result, error) {
	if local == nil {
		return Result{}, fmt.Errorf("%w: txn: there is no local transaction", rocketmq.ErrInvalidMessage)
	}
	if !p.inside.enter() {
		return Result{}, rocketmq.ErrClosed
	}
	defer p.inside.leave()
	tx, err := p.begin(ctx, m)
	if err != nil {
		return Result{}, err
	}
	state, err := tx.run(ctx, local)
	if tx.decided() != Unknown {
		return tx.result(), err // local has told the broker itself
	}
	told, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.cfg.total)
	defer cancel()
	err = joined(err, tx.end(told, state))
	return tx.result(), err
}

// Begin stores m as a half message and returns the transaction, for code that
// spans functions. It must be ended with [Tx.Commit] or [Tx.Rollback]; else the
// broker asks the [Checker]. Errors are those of producer.Send, and there is no
// transaction then.
func (p *Producer) Begin(ctx context.Context, m *rocketmq.Message) (*Tx, error) {
	if !p.inside.enter() {
		return nil, rocketmq.ErrClosed
	}
	defer p.inside.leave()
	return p.begin(ctx, m)
}

func (p *Producer) begin(ctx context.Context, m *rocketmq.Message) (*Tx, error) {
	h, err := p.pipe.SendHalf(ctx, m, p.cfg.immunity)
	if h.MessageID == "" {
		return nil, err
	}
	tx := newTx(p, h)
	if err != nil {
		// Stored, but not as safely as it was to be. Nothing has happened yet, so
		// it is taken back, as Apache's client does.
		told, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.cfg.total)
		defer cancel()
		return nil, errors.Join(err, tx.end(told, Rollback))
	}
	return tx, nil
}

// Close refuses further transactions and checks, waits for calls of Send and for
// checks under way, as long as ctx allows, and leaves the producer group. When
// ctx ends first the contexts of checks end, too. Transactions of Begin are not
// waited for; they can be ended as long as the client is open, and else are left
// to the others of the group. It may be called more than once and
// concurrently; all calls return the first one's error. The client stays open.
func (p *Producer) Close(ctx context.Context) error {
	p.closing.Do(func() {
		p.closeErr = p.end(ctx)
		if p.release != nil {
			p.release()
		}
	})
	return p.closeErr
}

func (p *Producer) end(ctx context.Context) error {
	p.inside.shut()
	p.tasks.Cancel(rocketmq.ErrClosed)
	errs := []error{p.inside.wait(ctx), p.checks.close(ctx), p.pipe.Close(ctx)}
	p.tasks.Wait()
	return errors.Join(errs...)
}

// inside counts the calls under way, so that closing can wait for them.
type inside struct {
	mu     sync.Mutex // guards all below
	n      int
	closed bool
	empty  chan struct{}
}

func (i *inside) init() { i.empty = make(chan struct{}) }

func (i *inside) enter() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		return false
	}
	i.n++
	return true
}

func (i *inside) leave() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.n--; i.n == 0 && i.closed {
		close(i.empty)
	}
}

func (i *inside) shut() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.closed && i.n == 0 {
		close(i.empty)
	}
	i.closed = true
}

func (i *inside) wait(ctx context.Context) error {
	select {
	case <-i.empty:
		return nil
	case <-ctx.Done():
		i.mu.Lock()
		defer i.mu.Unlock()
		return fmt.Errorf("txn: %d transactions are still under way: %w", i.n, context.Cause(ctx))
	}
}
