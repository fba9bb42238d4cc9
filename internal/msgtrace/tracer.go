package msgtrace

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/bridge"
	"github.com/gorocketmq/rocketmq/internal/retry"
	"github.com/gorocketmq/rocketmq/internal/run"
	"github.com/gorocketmq/rocketmq/internal/send"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Role is whose traces they are, as the name of the sending group says it.
type Role string

// The roles.
const (
	Produce Role = "PRODUCE"
	Consume Role = "CONSUME"
)

// Config is what a [Tracer] is made of.
type Config struct {
	Handle *bridge.Handle
	Group  string // the producer's or consumer's
	Role   Role
	Topic  string // "": RMQ_SYS_TRACE_TOPIC
}

// Tracer sends trace records in the background. All methods are safe for
// concurrent use.
type Tracer struct {
	topic, group, host string

	pipe  pipeline
	log   *slog.Logger
	queue queue

	start      sync.Once
	goroutines *run.Group
	closing    chan struct{}
	closed     sync.Once

	failing atomic.Bool // what was sent last has not arrived

	// Of the goroutine that sends.
	batch   []entry
	backoff *retry.Backoff
	paused  time.Time // when it was last in use
	told    int64     // dropped traces that are logged
	toldAt  time.Time
}

// pipeline is what a Tracer needs of a [send.Pipeline].
type pipeline interface {
	Send(ctx context.Context, m *rocketmq.Message, o send.Options) (send.Result, error)
	SendAsync(ctx context.Context, m *rocketmq.Message, o send.Options, done func(send.Result, error))
	Close(ctx context.Context) error
}

const (
	flushEvery = 5 * time.Second // so long a record waits for others
	closeLimit = 5 * time.Second // so long Close waits at most
	tellEvery  = time.Minute     // so often dropped traces are logged at most

	sendTotal   = 3 * time.Second
	sendAttempt = time.Second
	sendRetries = 2
	inFlight    = 32 // messages
	inFlightMax = 4 << 20
)

// New returns a tracer. It does no I/O and starts nothing: that comes with the
// first record.
func New(cfg Config) *Tracer {
	if cfg.Topic == "" {
		cfg.Topic = wire.TopicTrace
	}
	h := *cfg.Handle
	h.Hooks = nil // they are for the user's messages
	return newTracer(cfg, send.New(send.Config{
		Handle: &h, Group: groupOf(cfg.Group, cfg.Role),
		Total: sendTotal, Attempt: sendAttempt, Retries: sendRetries, Avoidance: send.DefaultAvoidance(),
		WeakAck: true, Messages: inFlight, Bytes: inFlightMax,
	}))
}

func newTracer(cfg Config, pipe pipeline) *Tracer {
	host, _, _ := strings.Cut(cfg.Handle.Runtime.ClientID(), "@")
	t := &Tracer{
		topic: cfg.Topic, group: cfg.Group, host: host,
		pipe:       pipe,
		log:        cfg.Handle.Logger.With("group", cfg.Group, "topic", cfg.Topic),
		goroutines: run.NewGroup(context.Background()),
		closing:    make(chan struct{}),
		backoff:    retry.Policy{Min: time.Second, Max: 30 * time.Second}.New(),
	}
	t.queue.init()
	return t
}

// groupOf is the producer group that traces are sent by. Java numbers the
// tracers of a process; here one client's share a group, which brokers see once.
func groupOf(group string, r Role) string {
	return "_INNER_TRACE_PRODUCER-" + group + "-" + string(r) + "-1"
}

// Dropped is how many contexts (for a producer: messages) went untraced,
// because the queue was full, sending failed or Close had no time left.
func (t *Tracer) Dropped() int64 { return t.queue.lost() }

// put hands over one context and never waits. Of several records in it none is
// dropped alone; what is larger than a message, [maxBody], has to be given in
// parts.
func (t *Tracer) put(e entry) {
	t.queue.put(e)
	t.start.Do(func() { t.goroutines.Go(t.run) })
}

// Close sends what is left, for up to 5 s and as long as ctx allows, and drops
// the rest. What comes later is dropped. Losses are logged and no error: traces
// are not what a closing application waits for.
func (t *Tracer) Close(ctx context.Context) {
	t.closed.Do(func() { t.end(ctx) })
}

func (t *Tracer) end(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, closeLimit)
	defer cancel()
	t.queue.close()
	close(t.closing)
	t.start.Do(func() {}) // nothing came: nothing to send
	err := t.goroutines.WaitContext(ctx)
	if err != nil {
		t.goroutines.Cancel(nil)
	}
	err = errors.Join(err, t.pipe.Close(ctx))
	t.goroutines.Cancel(nil)
	t.queue.discard()
	if n := t.queue.missing(); n > 0 || err != nil {
		t.log.Warn("message traces have ended", "dropped", n, "err", err)
	}
}

// run sends full messages at once and others after some time.
func (t *Tracer) run(ctx context.Context) {
	timer := time.NewTimer(flushEvery)
	defer timer.Stop()
	var due <-chan time.Time // nil: nothing waits
	for {
		select {
		case <-t.queue.ready:
			if due == nil {
				timer.Reset(flushEvery)
				due = timer.C
			}
			t.flush(ctx, false)
			if t.queue.empty() {
				due = nil
			}
		case <-due:
			due = nil
			t.flush(ctx, true)
		case <-t.closing:
			t.flush(ctx, true)
			return
		case <-ctx.Done():
			return
		}
	}
}

// flush sends what makes full messages, or all there is. While closing it ends
// with the first message that cannot be sent.
func (t *Tracer) flush(ctx context.Context, all bool) {
	for {
		t.batch = t.queue.take(t.batch[:0], all)
		if len(t.batch) == 0 {
			t.tell()
			return
		}
		if !t.deliver(ctx, t.batch) && t.ending(ctx) {
			return
		}
	}
}

func (t *Tracer) ending(ctx context.Context) bool {
	select {
	case <-t.closing:
		return true
	case <-ctx.Done():
		return true
	default:
		return false
	}
}

// deliver sends one message, and waits only for room in the pipeline's window.
// When sending fails it goes one by one, with pauses between, until one
// arrives. false means that this one has not.
func (t *Tracer) deliver(ctx context.Context, batch []entry) bool {
	n := len(batch)
	m := message(t.topic, batch)
	clear(batch)
	if !t.failing.Load() {
		t.pipe.SendAsync(ctx, m, send.Options{}, func(_ send.Result, err error) { t.settle(n, err) })
		return true
	}
	t.pause(ctx)
	if _, err := t.pipe.Send(ctx, m, send.Options{}); err != nil {
		t.queue.lose(n)
		return false
	}
	t.queue.arrived(n)
	t.failing.Store(false)
	t.told = t.Dropped()
	t.log.Info("message traces are sent again", "dropped", t.told)
	return true
}

// settle notes how an asynchronous send ended.
func (t *Tracer) settle(n int, err error) {
	if err == nil {
		t.queue.arrived(n)
		return
	}
	t.queue.lose(n)
	if t.failing.CompareAndSwap(false, true) && t.goroutines.Context().Err() == nil {
		t.log.Warn("message traces cannot be sent and are dropped", "err", err)
	}
}

// pause waits before another attempt, longer from time to time.
func (t *Tracer) pause(ctx context.Context) {
	if time.Since(t.paused) > time.Minute {
		t.backoff.Reset() // that was another trouble
	}
	timer := time.NewTimer(t.backoff.Next())
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.closing:
	case <-ctx.Done():
	}
	t.paused = time.Now()
}

// tell logs what the queue had no room for; what is lost while sending fails
// is told when that ends.
func (t *Tracer) tell() {
	n := t.Dropped()
	if n == t.told || t.failing.Load() || !t.toldAt.IsZero() && time.Since(t.toldAt) < tellEvery {
		return
	}
	t.log.Warn("message traces come faster than they can be sent and are dropped", "dropped", n-t.told)
	t.told, t.toldAt = n, time.Now()
}

// message makes one of contexts. Its keys are theirs, each once; those that
// there is no room for are only in the records.
func message(topic string, batch []entry) *rocketmq.Message {
	body := 0
	for i := range batch {
		body += batch[i].body
	}
	m := &rocketmq.Message{Topic: topic, Body: make([]byte, 0, body)}
	seen := make(map[string]struct{}, 2*len(batch))
	size := 0
	for i := range batch {
		m.Body = append(m.Body, batch[i].records()...)
		for k := range strings.SplitSeq(string(batch[i].keys()), " ") {
			if _, ok := seen[k]; ok || k == "" || size+len(k)+1 > maxKeys {
				continue
			}
			seen[k] = struct{}{}
			size += len(k) + 1
			m.Keys = append(m.Keys, k)
		}
	}
	return m
}
