package producer

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gorocketmq/rocketmq"
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
}

// DefaultGroup is the producer group if [WithGroup] sets none.
const DefaultGroup = "GO_PRODUCER"

func defaultConfig() config {
	return config{group: DefaultGroup, total: 3 * time.Second, attempt: time.Second, retries: 2}
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

func target(opts []SendOption) (t send.Target) {
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
