package consumer

import (
	"errors"
	"sync"
)

// tuned are the subscriptions as they are now.
type tuned struct {
	mu   sync.Mutex // guards subs; Consumer.tuning is taken under it
	subs map[string]subscription
}

func newTuned(subs []subscription) *tuned {
	t := &tuned{subs: make(map[string]subscription, len(subs))}
	for _, s := range subs {
		t.subs[s.topic] = s
	}
	return t
}

// Tune changes [Concurrency], [Rate], [Batch], [Cache] and [Span] of a subscription at
// once; what is not named stays as it is. It may be called at any time, also before
// Run, and does not block. Calls that run finish: with less concurrency it takes
// that long until there are fewer. A topic that is not subscribed, or a value that
// [Subscribe] would not take, is [rocketmq.ErrInvalidOption], and nothing is
// changed.
func (m *member) Tune(topic string, opts ...SubOption) error {
	m.tuned.mu.Lock()
	defer m.tuned.mu.Unlock()
	s, ok := m.tuned.subs[topic]
	if ok {
		for _, o := range opts {
			if o != nil {
				o(&s)
			}
		}
		var c config
		if s.checkSettings(&c); c.faults != nil {
			return errors.Join(c.faults...)
		}
	}
	if err := m.c.Tune(topic, s.set); err != nil {
		return err
	}
	m.tuned.subs[topic] = s
	return nil
}

// Pause has no further message of a topic handled until [Push.Resume]: its queues
// are not pulled, and what is in the cache, or comes with a pull that waits at the
// broker, stays there. Calls that run finish. The queues stay this member's:
// heartbeats, offsets and locks go on. Retried messages of the topic wait, too;
// they share a queue with those of other topics and can in the end hold those up,
// when [Cache] is full of them. It may be called at any time, also before Run, and
// again, which does nothing, and does not block. A topic that is not subscribed is
// [rocketmq.ErrInvalidOption].
//
// A member with [Broadcasting] pauses for itself, and so does one with Clustering:
// the other members of the group go on with their queues.
func (m *member) Pause(topic string) error { return m.c.Pause(topic) }

// Resume ends a [Push.Pause]. Errors are the same.
func (m *member) Resume(topic string) error { return m.c.Resume(topic) }
