package producer

import (
	"context"
	"fmt"
	"strings"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/send"
)

// SendBatch sends messages of one topic, as many with each request as the
// broker takes (4 MiB of stored records), one request after the other. Each
// message has its own id, and consumers see them as if they had been sent one by
// one. Messages of one request get consecutive offsets of one queue. Messages
// with sharding keys go to the queues of their keys; a [To] or [Via] or a
// producer's selector sends each request to one queue, chosen for its first
// message.
//
// There is a result for each message, in order. If some have failed the error
// is a [BatchError]. If one of the messages is refused (rocketmq.ErrInvalidMessage;
// also for another topic, a delay, an empty list) nothing is sent and there are
// no results. Timeouts count for each request; bodies are not compressed.
func (p *Producer) SendBatch(ctx context.Context, ms []*rocketmq.Message, opts ...SendOption) ([]Result, error) {
	if p.intercept != nil {
		return p.interceptBatch(ctx, ms, opts)
	}
	return p.sendBatch(ctx, ms, options(opts))
}

func (p *Producer) sendBatch(ctx context.Context, ms []*rocketmq.Message, o send.Options) ([]Result, error) {
	out := make([]Result, len(ms))
	errs, err := p.pipe.SendBatch(ctx, ms, o, func(i int, r send.Result) { out[i] = result(r) })
	if err != nil {
		return nil, err
	}
	return out, batchError(errs)
}

// BatchError is the error of a batch of which some messages have failed: one
// entry for each message, nil for those that were stored. errors.Is and
// errors.As look at all of them.
type BatchError []error

func batchError(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return BatchError(errs)
		}
	}
	return nil
}

// Error names each reason once.
func (e BatchError) Error() string {
	failed, last := 0, ""
	var why []string
	for _, err := range e {
		if err == nil {
			continue
		}
		failed++
		if text := err.Error(); text != last {
			last, why = text, append(why, text)
		}
	}
	return fmt.Sprintf("producer: %d of %d messages failed: %s", failed, len(e), strings.Join(why, "; "))
}

// Unwrap returns the errors that are not nil.
func (e BatchError) Unwrap() []error {
	var out []error
	for _, err := range e {
		if err != nil {
			out = append(out, err)
		}
	}
	return out
}
