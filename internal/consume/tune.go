package consume

import (
	"fmt"
	"time"

	"github.com/gorocketmq/rocketmq"
)

// Settings are what can be changed of a subscription while it is in use.
type Settings struct {
	Concurrency, Batch        int
	CacheMessages, CacheBytes int     // per queue
	Span                      int     // per queue; not in order
	Rate                      float64 // messages a second over all queues; 0: no limit
}

// subscribed finds a subscription by its public topic.
func (c *Consumer) subscribed(name string) (*topic, error) {
	for _, t := range c.topics {
		if t.name == name && t.d != nil {
			return t, nil
		}
	}
	return nil, fmt.Errorf("%w: the consumer of group %q has no subscription of topic %q", rocketmq.ErrInvalidOption, c.cfg.Group, name)
}

// Tune changes a subscription at once. The retry topic has the cache limits of the
// first one.
func (c *Consumer) Tune(name string, s Settings) error {
	t, err := c.subscribed(name)
	if err != nil {
		return err
	}
	c.tuning.Lock()
	defer c.tuning.Unlock()
	t.limits.set(s)
	if retry := c.topics[len(c.topics)-1]; retry.retry && t == c.topics[0] {
		retry.limits.set(s)
	}
	t.d.tune(s)
	c.resize()
	for _, q := range c.queues() {
		if q.full.Load() {
			q.roomMade()
		}
	}
	return nil
}

// resize gives the pool a place for each worker of all dispatchers. The caller
// holds Consumer.tuning.
func (c *Consumer) resize() {
	size := c.workers()
	c.mu.Lock()
	p := c.pool
	c.mu.Unlock()
	if p != nil {
		p.Resize(size)
	}
}

// workers is how many handlers can be called at a time.
func (c *Consumer) workers() int {
	n := 0
	for _, t := range c.topics {
		if t.d != nil {
			t.d.mu.Lock()
			n += t.d.limit
			t.d.mu.Unlock()
		}
	}
	return n
}

// Pause has a topic's queues neither pulled nor handled until Resume is called.
// Calls that run go on, and the queues stay ours.
func (c *Consumer) Pause(name string) error { return c.setPaused(name, true) }

// Resume ends a pause.
func (c *Consumer) Resume(name string) error { return c.setPaused(name, false) }

func (c *Consumer) setPaused(name string, paused bool) error {
	t, err := c.subscribed(name)
	if err != nil {
		return err
	}
	c.tuning.Lock()
	defer c.tuning.Unlock()
	if t.paused.Swap(paused) == paused {
		return nil
	}
	c.log.Info("pause of a topic changed", "topic", name, "paused", paused)
	t.d.paused.Store(paused)
	// Retried messages of all topics come by one queue: it is pulled as long as
	// anybody wants them.
	all := true
	for _, o := range c.topics {
		if o.retry {
			o.paused.Store(all)
		}
		all = all && o.paused.Load()
	}
	if paused {
		return nil
	}
	t.d.goOn()
	if c.cfg.Ordered {
		c.topics[0].d.goOn() // retried messages of all topics are in its lanes
	}
	for _, q := range c.queues() {
		if q.topic == t || q.topic.retry {
			q.unpause()
		}
	}
	return nil
}

// unpause has a queue pull that did not because its topic was paused.
func (q *queue) unpause() {
	q.mu.Lock()
	again := q.phase == phasePaused
	if again {
		q.phase = phaseIdle
	}
	q.mu.Unlock()
	if again {
		q.startPull()
	}
}

// tune changes what a dispatcher works with.
func (d *dispatcher) tune(s Settings) {
	d.batch.Store(int32(s.Batch))
	if old := d.rate.Load(); old == nil || s.Rate == 0 || newLimiter(s.Rate).share != old.share {
		d.rate.Store(newLimiter(s.Rate))
	}
	d.mu.Lock()
	d.limit = s.Concurrency
	d.surplus.Store(d.active > d.limit)
	for _, l := range d.lanes {
		d.offerLocked(l) // one lane may have more workers now
	}
	d.mu.Unlock()
	d.goOn()
}

// shutLocked tells whether no worker may take anything.
func (d *dispatcher) shutLocked() bool { return d.waiting || d.paused.Load() }

// goOn wakes a worker when there is a reason to look again. It wakes the others.
func (d *dispatcher) goOn() {
	d.mu.Lock()
	d.waiting = false
	wake := len(d.ready) > 0 && d.active < d.limit && !d.shutLocked()
	if wake {
		d.active++
	}
	d.mu.Unlock()
	if wake {
		d.wake()
	}
}

// await has no worker take anything until a time that the rate sets.
func (d *dispatcher) await(wait time.Duration) {
	d.mu.Lock()
	first := !d.waiting
	d.waiting = true
	d.mu.Unlock()
	if first {
		d.c.timers.after(wait, d.proceed)
	}
}

// viaAgain is when a lane is looked at again whose next message is for a handler
// that is paused, or waits for its rate, and not for that of its dispatcher.
const viaAgain = 100 * time.Millisecond

// admit tells whether a worker may take up to n messages for the handler of h now.
// r is the limiter that has been charged with them, nil if there is none.
func (d *dispatcher) admit(me *worker, h *dispatcher, n int) (r *limiter, ok bool) {
	if h.paused.Load() {
		if h != d {
			d.c.suspend(d, me.lane, viaAgain)
		}
		return nil, false
	}
	r = h.rate.Load()
	if r == nil || n <= 0 {
		return nil, true
	}
	wait := r.reserve(n, time.Now())
	switch {
	case wait <= 0:
		return r, true
	case h != d:
		d.c.suspend(d, me.lane, max(wait, viaAgain))
	default:
		d.await(wait)
	}
	return nil, false
}

// set takes over the limits of the cache.
func (l *limits) set(s Settings) {
	l.messages.Store(int64(s.CacheMessages))
	l.bytes.Store(int64(s.CacheBytes))
	l.span.Store(int64(s.Span))
}
