package txn

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/wire"
	"github.com/gorocketmq/rocketmq/selector"
)

// Option configures a [Producer]. Options only record; [NewProducer] judges them
// all.
type Option func(*config)

type config struct {
	group       string
	total       time.Duration
	attempt     time.Duration
	retries     int
	selector    selector.QueueSelector
	immunity    time.Duration
	topics      []string
	concurrency int
	timeout     time.Duration
}

func defaultConfig() config {
	return config{total: 3 * time.Second, attempt: time.Second, retries: 2, concurrency: 4, timeout: 30 * time.Second}
}

// WithCheckConcurrency sets how many checks run at a time, 4 by default, from 1
// to 1024. Checks of one message never overlap. What comes while all are busy
// waits, up to 2,000 checks or 64 MiB; what comes beyond is dropped, and the
// broker asks again.
func WithCheckConcurrency(n int) Option { return func(c *config) { c.concurrency = n } }

// WithCheckTimeout sets the deadline of the context of each check, 30 s by
// default. A checker that does not heed it keeps its place.
func WithCheckTimeout(d time.Duration) Option { return func(c *config) { c.timeout = d } }

// WithImmunity has the broker not ask for so long, in whole seconds, rounded up,
// instead of for its transactionTimeOut, 6 s. It is for local transactions that
// take longer. A broker of 5.x refuses decisions that come later, other than in
// the answer to a check. By default the broker decides.
func WithImmunity(d time.Duration) Option { return func(c *config) { c.immunity = d } }

// WithTopics names the topics that the group sends to. Their brokers know this
// producer soon after it was made, and can ask it about transactions that others
// of the group have left behind, before it sends anything itself. Without the
// option all brokers are told that have half messages of anybody.
func WithTopics(topics ...string) Option {
	return func(c *config) { c.topics = append(c.topics, topics...) }
}

// WithTimeout sets how long sending the half message, and telling the decision,
// may take with all attempts, and how long one attempt may: 3 s and 1 s by
// default.
func WithTimeout(total, attempt time.Duration) Option {
	return func(c *config) { c.total, c.attempt = total, attempt }
}

// WithRetries sets how many attempts may follow the first: 2 by default, from 0
// to 16. A half message that was stored by an attempt whose answer got lost is
// asked about, with the same id.
func WithRetries(n int) Option { return func(c *config) { c.retries = n } }

// WithSelector sets how queues are chosen, as producer.WithSelector does.
func WithSelector(s selector.QueueSelector) Option { return func(c *config) { c.selector = s } }

func (c *config) validate(check Checker) error {
	var errs []error
	bad := func(option, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: %s: %s", rocketmq.ErrInvalidOption, option, fmt.Sprintf(format, args...)))
	}
	if err := wire.ValidateGroup(c.group); err != nil {
		bad("group", "%v", err)
	} else if c.group == wire.GroupDefaultProd || strings.HasPrefix(c.group, "%") {
		bad("group", "the group %q is reserved", c.group)
	}
	if check == nil {
		bad("check", "there is no checker; without one a lost outcome would stay lost")
	}
	if c.total <= 0 || c.attempt <= 0 || c.attempt > c.total {
		bad("WithTimeout", "total %s and attempt %s must be positive, attempt not more than total", c.total, c.attempt)
	}
	if c.retries < 0 || c.retries > 16 {
		bad("WithRetries", "%d is outside of 0 to 16", c.retries)
	}
	if c.immunity < 0 || c.immunity > 24*time.Hour {
		bad("WithImmunity", "%s is outside of 0 to 24h", c.immunity)
	}
	if c.concurrency < 1 || c.concurrency > 1024 {
		bad("WithCheckConcurrency", "%d is outside of 1 to 1024", c.concurrency)
	}
	if c.timeout <= 0 {
		bad("WithCheckTimeout", "%s must be positive", c.timeout)
	}
	for _, t := range c.topics {
		if err := wire.ValidateTopic(t); err != nil {
			bad("WithTopics", "%v", err)
		}
	}
	return errors.Join(errs...)
}
