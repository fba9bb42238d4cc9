package producer

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/bridge"
	"github.com/gorocketmq/rocketmq/internal/send"
	"github.com/gorocketmq/rocketmq/internal/wire"
	"github.com/gorocketmq/rocketmq/selector"
)

// Option configures a [Producer]. Options only record; [New] judges them all.
type Option func(*config)

type config struct {
	group      string
	total      time.Duration
	attempt    time.Duration
	retries    int
	selector   selector.QueueSelector
	autoCreate int
	auto       bool
	weakAck    bool

	avoidance    Avoidance
	compression  send.Compression
	messages     int
	bytes        int
	linger       time.Duration
	lingerBytes  int
	lingerSet    bool
	interceptors []Interceptor
	trace        string
	traceSet     bool
}

// pipeline is what the options mean.
func (c *config) pipeline(h *bridge.Handle) send.Config {
	avoidance := make(send.Avoidance, len(c.avoidance))
	for i, s := range c.avoidance {
		avoidance[i] = send.AvoidStep(s)
	}
	return send.Config{
		Handle:      h,
		Group:       c.group,
		Total:       c.total,
		Attempt:     c.attempt,
		Retries:     c.retries,
		Selector:    c.selector,
		AutoCreate:  c.autoCreate,
		WeakAck:     c.weakAck,
		Avoidance:   avoidance,
		Compression: c.compression,
		Messages:    c.messages,
		Bytes:       c.bytes,
		Linger:      c.linger,
		LingerBytes: c.lingerBytes,
	}
}

// DefaultGroup is the producer group if [WithGroup] sets none.
const DefaultGroup = "GO_PRODUCER"

func defaultConfig() config {
	return config{
		group: DefaultGroup, total: 3 * time.Second, attempt: time.Second, retries: 2,
		avoidance:   DefaultAvoidance(),
		compression: send.Compression{Codec: send.ZLIB, Level: 5, Threshold: 4 << 10},
		messages:    1024, bytes: 32 << 20,
	}
}

// WithGroup sets the producer group, [DefaultGroup] if not set. Admin tools
// list producers by it; beyond that it only matters for transactions.
func WithGroup(name string) Option { return func(c *config) { c.group = name } }

// WithTimeout sets how long a send may take with all its attempts, and how long
// one attempt may: 3 s and 1 s by default. A deadline of the context lowers
// total. Attempts get what is left of total if that is less. Deadlines are
// noticed up to 50 ms late.
func WithTimeout(total, attempt time.Duration) Option {
	return func(c *config) { c.total, c.attempt = total, attempt }
}

// WithRetries sets how many attempts may follow the first: 2 by default, from 0
// to 16. They go to another broker if the topic has one; messages with a
// sharding key or a fixed queue stay with theirs.
func WithRetries(n int) Option { return func(c *config) { c.retries = n } }

// WithSelector sets how queues are chosen. By default messages with a sharding
// key go by selector.Hash and all others take turns, keeping away from brokers
// that lately did not answer.
func WithSelector(s selector.QueueSelector) Option { return func(c *config) { c.selector = s } }

// WithAutoCreate sends messages for a topic that does not exist to a broker
// that creates topics (autoCreateTopicEnable), and asks it for so many queues.
// Off by default: a typo in a topic's name is then an error and not a topic.
func WithAutoCreate(queues int) Option {
	return func(c *config) { c.autoCreate, c.auto = queues, true }
}

// WithWeakAck makes a send a success when the master has stored the message
// but could not flush or replicate it in time. Without it that is an error,
// rocketmq.ErrNotDurable, along with the full [Result]. Result.Status tells in
// both cases.
func WithWeakAck() Option { return func(c *config) { c.weakAck = true } }

// Avoidance says for how long to keep away from a broker whose answer took so
// long, as far as there are others. Steps are in rising order of Latency; the
// last one that applies counts.
type Avoidance []AvoidStep

// AvoidStep is to keep away For a time after an answer that took Latency or
// more.
type AvoidStep struct{ Latency, For time.Duration }

// DefaultAvoidance is the table of Apache's MQFaultStrategy since 5.1.4: from
// 2 s after an answer that took 550 ms to 30 s after one that took 15 s.
func DefaultAvoidance() Avoidance {
	var a Avoidance
	for _, s := range send.DefaultAvoidance() {
		a = append(a, AvoidStep(s))
	}
	return a
}

// WithFaultAvoidance sets how slow answers are avoided, [DefaultAvoidance] by
// default; nil avoids none. Brokers that gave no answer, cannot be connected to
// or say that they do not serve are always avoided for a while, 10 s and 2 s.
// All that concerns messages whose queues the producer takes in turn.
func WithFaultAvoidance(a Avoidance) Option { return func(c *config) { c.avoidance = a } }

// Codec is a way to compress bodies.
type Codec uint8

// The codecs. Every client reads ZLIB. LZ4 and ZSTD are read by Java clients
// from 4.9.4 and 5.0 on and by this library, but not by the official Go client.
const (
	NoCompression = Codec(send.NoCodec)
	ZLIB          = Codec(send.ZLIB)
	LZ4           = Codec(send.LZ4)
	ZSTD          = Codec(send.ZSTD)
)

// WithCompression sets how bodies of threshold bytes and more are compressed:
// by default with ZLIB at level 5 from 4096 bytes on. Levels are 1 to 9 for
// ZLIB, 0 to 9 for LZ4, 1 to 22 for ZSTD. Bodies that do not get shorter go as
// they are, and so do those of batches. The message itself is not changed.
func WithCompression(codec Codec, level, threshold int) Option {
	return func(c *config) {
		c.compression = send.Compression{Codec: send.Codec(codec), Level: level, Threshold: threshold}
	}
}

// WithInflight bounds the asynchronous sends under way, by their number and by
// the bytes of their bodies and 512 for each message: 1024 and 32 MiB by
// default. SendAsync waits for room. A larger body goes when there is nothing
// else. More than a broker stores within the timeout of an attempt only makes
// attempts fail.
func WithInflight(messages, bytes int) Option {
	return func(c *config) { c.messages, c.bytes = messages, bytes }
}

// WithLinger holds asynchronous sends back for up to d, to send those for one
// topic together as batches of up to so many bytes: more messages per second
// for more time per message. Off by default. Messages with a sharding key or a
// selector wait for others of the same queue; those that cannot be in a batch go
// at once. Batches are not compressed.
func WithLinger(d time.Duration, bytes int) Option {
	return func(c *config) { c.linger, c.lingerBytes, c.lingerSet = d, bytes, true }
}

// WithInterceptors wraps all sends; the first interceptor is the outermost. See
// [Interceptor].
func WithInterceptors(i ...Interceptor) Option {
	return func(c *config) { c.interceptors = append(c.interceptors, i...) }
}

// WithTrace records what becomes of each message in a topic, for Apache's tools
// (mqadmin queryMsgTraceById, the dashboard): when it was sent, where to, how
// long that took, whether it worked. "" is RMQ_SYS_TRACE_TOPIC, which brokers
// have with traceTopicEnable; another topic has to exist as well, and is in the
// client's namespace like any other. Off by default.
//
// Traces never fail or delay a send. They are sent in the background, ten in a
// message or after 5 s; what cannot be sent, or comes faster than it can be, is
// dropped, and a log line says so. [Producer.Close] sends what is left, for up
// to 5 s. Messages for the trace topic itself are not traced, nor those whose
// broker wants no traces (traceOn=false).
func WithTrace(topic string) Option {
	return func(c *config) { c.trace, c.traceSet = topic, true }
}

func (c *config) validate() error {
	var errs []error
	bad := func(option, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: %s: %s", rocketmq.ErrInvalidOption, option, fmt.Sprintf(format, args...)))
	}
	if err := wire.ValidateGroup(c.group); err != nil {
		bad("WithGroup", "%v", err)
	} else if c.group == wire.GroupDefaultProd || strings.HasPrefix(c.group, "%") {
		bad("WithGroup", "the group %q is reserved", c.group)
	}
	if c.total <= 0 || c.attempt <= 0 || c.attempt > c.total {
		bad("WithTimeout", "total %s and attempt %s must be positive, attempt not more than total", c.total, c.attempt)
	}
	if c.retries < 0 || c.retries > 16 {
		bad("WithRetries", "%d is outside of 0 to 16", c.retries)
	}
	if c.auto && (c.autoCreate < 1 || c.autoCreate > 1024) {
		bad("WithAutoCreate", "%d queues are outside of 1 to 1024", c.autoCreate)
	}
	for i, s := range c.avoidance {
		if s.Latency < 0 || s.For < 0 || i > 0 && s.Latency <= c.avoidance[i-1].Latency {
			bad("WithFaultAvoidance", "step %d, %s for %s: times must not be negative, latencies must rise", i, s.Latency, s.For)
		}
	}
	if err := c.compression.Check(); err != nil {
		bad("WithCompression", "%v", err)
	}
	if c.messages < 1 || c.bytes < 1 {
		bad("WithInflight", "%d messages and %d bytes must be positive", c.messages, c.bytes)
	}
	if c.lingerSet && (c.linger <= 0 || c.linger >= c.total || c.lingerBytes < 1 || c.lingerBytes > rocketmq.MaxBody) {
		bad("WithLinger", "%s must be positive and less than the total timeout %s, %d bytes from 1 to %d", c.linger, c.total, c.lingerBytes, rocketmq.MaxBody)
	}
	if c.traceSet && c.trace != "" {
		if err := wire.ValidateTopic(c.trace); err != nil {
			bad("WithTrace", "%v", err)
		} else if !wire.MaySendTo(c.trace) {
			bad("WithTrace", "the topic %q is one of the system's own and takes no messages", c.trace)
		}
	}
	for _, i := range c.interceptors {
		if i == nil {
			bad("WithInterceptors", "an interceptor is nil")
		}
	}
	return errors.Join(errs...)
}

// SendOption changes one send.
type SendOption struct {
	queue    rocketmq.Queue
	fixed    bool
	selector selector.QueueSelector
}

// To sends to one queue, also when that is tried again. An empty Topic means
// the message's. The queue must be in the topic's route; see
// [Producer.Queues].
func To(q rocketmq.Queue) SendOption { return SendOption{queue: q, fixed: true} }

// Via chooses the queue of this send. Of several options the last one counts;
// [To] comes before Via.
func Via(s selector.QueueSelector) SendOption { return SendOption{selector: s} }

func options(opts []SendOption) (t send.Options) {
	for i := range opts {
		if opts[i].fixed {
			t.Queue, t.Fixed = opts[i].queue, true
		}
		if opts[i].selector != nil {
			t.Selector = opts[i].selector
		}
	}
	return t
}
