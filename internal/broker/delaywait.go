package broker

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

// What those who move the clock by hand need to know about delayed messages.

// errNoDelays is why there is no delayed message to wait for.
var errNoDelays = errors.New("the broker delivers no delayed messages, it is ending")

// SettleDelays blocks until everything that was stored before the call has
// been seen, and the delayed messages that are due now have been delivered and
// can be consumed, or could not be stored. So it is with popped messages that
// are visible again.
func (b *Broker) SettleDelays(ctx context.Context) error {
	if err := b.store.WaitDispatched(ctx); err != nil {
		return err
	}
	if err := b.delays.settle(ctx); err != nil {
		return err
	}
	if err := b.timers.settle(ctx); err != nil {
		return err
	}
	return b.pop.Settle(ctx)
}

// NextDelayed is when the next delayed message is due, when one that could not
// be stored is tried again, or when a popped one becomes visible again unless it
// is acknowledged; false if there is none. It is right after
// [Broker.SettleDelays], and otherwise may lack what has just been sent.
func (b *Broker) NextDelayed() (time.Time, bool) {
	at, ok, _ := b.delays.nextDue()
	if timer, waits, _ := b.timers.nextDue(); waits && (!ok || timer.Before(at)) {
		at, ok = timer, true
	}
	if visible, popped, _ := b.pop.NextVisible(); popped && (!ok || visible.Before(at)) {
		return visible, true
	}
	return at, ok
}

// Delayed is how many messages wait to be delivered.
func (b *Broker) Delayed() int64 {
	n := int64(0)
	for _, queue := range b.store.Queues(wire.TopicSchedule) {
		n += b.store.MaxOffset(wire.TopicSchedule, queue) - max(b.delays.progress.offset(queue), b.store.MinOffset(wire.TopicSchedule, queue))
	}
	return max(n, 0) + b.timers.behind() + b.timers.counts.all()
}

// AwaitDelayed blocks until there is a delayed message, due or not, or a popped
// one.
func (b *Broker) AwaitDelayed(ctx context.Context) error {
	for {
		_, level, levels := b.delays.nextDue()
		_, timer, timers := b.timers.nextDue()
		_, out, popped := b.pop.NextVisible()
		if level || timer || out {
			return nil
		}
		if levels == nil {
			return errNoDelays
		}
		select {
		case <-levels:
		case <-timers:
		case <-popped:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// delayInfo adds how far the delay levels have come, and could, to the
// broker's runtime figures.
func (b *Broker) delayInfo(info map[string]string) {
	if b.timers.files != nil {
		st := b.timers.files.State()
		info["timerReadBehind"] = strconv.FormatInt(max(b.clock.Now().UnixMilli()-st.Time, 0)/1000, 10)
	}
	info["timerOffsetBehind"] = strconv.FormatInt(b.timers.behind(), 10)
	info["timerCongestNum"] = strconv.FormatInt(b.timers.counts.all(), 10)
	for level, off := range b.delays.progress.all() {
		key := "scheduleMessageOffset_" + strconv.Itoa(int(level))
		info[key] = fmt.Sprintf("%d,%d", off, b.store.MaxOffset(wire.TopicSchedule, level-1))
	}
}
