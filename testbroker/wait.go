package testbroker

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/broker"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Groups returns the consumer groups that have members online or have
// committed an offset, on brokers that are up, sorted.
func (c *Cluster) Groups() []string {
	c.helper()
	all := map[string]struct{}{}
	c.must(c.inTurn(func(context.Context) error {
		for _, b := range c.up() {
			for _, g := range b.ConsumerGroups() {
				all[g] = struct{}{}
			}
		}
		return nil
	}))
	return slices.Sorted(maps.Keys(all))
}

// Member is one member of a consumer group.
type Member struct {
	ClientID string
	Addr     string   // where it connects from, as one of the brokers sees it
	Topics   []string // what the group subscribes to, its retry topic excepted, sorted
}

// Members returns the members of a consumer group that are online at any
// broker, by client id.
func (c *Cluster) Members(group string) []Member {
	c.helper()
	all := map[string]Member{}
	c.must(c.inTurn(func(context.Context) error {
		for _, b := range c.up() {
			g, _ := b.ConsumerGroup(group)
			var topics []string
			for _, s := range g.Subscriptions {
				if !wire.IsRetryTopic(s.Topic) {
					topics = append(topics, s.Topic)
				}
			}
			for _, m := range g.Members {
				all[m.ID] = Member{ClientID: m.ID, Addr: m.Conn.Remote(), Topics: topics}
			}
		}
		return nil
	}))
	var out []Member
	for _, id := range slices.Sorted(maps.Keys(all)) {
		out = append(out, all[id])
	}
	return out
}

// WaitConsumed blocks until a group has committed that it has finished n
// messages of a topic, those of before the call included: until its offsets,
// see [Cluster.Offset], add up to n. Messages that failed and wait for a retry
// count as finished, as do those that the group does not want. Push consumers
// need not be waited for until they commit by themselves; those that commit by
// hand must do it. For consumers that broadcast there is nothing to wait for. It
// returns the cause of ctx's end.
func (c *Cluster) WaitConsumed(ctx context.Context, group, topic string, n int) error {
	got := int64(0)
	err := c.await(ctx, func(ctx context.Context, nudge bool) (done bool, err error) {
		got = 0
		for _, b := range c.up() {
			if nudge {
				b.ReleasePulls(group, topic)
			}
		}
		err = c.eachQueue(ctx, topic, func(b *broker.Broker, q rocketmq.Queue) error {
			off, _ := b.Offset(group, topic, int32(q.ID))
			got += off
			return nil
		})
		return got >= int64(n), err
	})
	if err != nil {
		return fmt.Errorf("testbroker: group %s has finished %d of %d messages of %s: %w", group, got, n, topic, err)
	}
	return nil
}

// WaitIdle blocks until the groups that are online have committed that they
// have finished all messages of what they subscribe to, retries that are due
// included. Messages that wait for their time, see [Cluster.Delayed], are not
// waited for, and groups that broadcast keep their offsets to themselves. It
// returns the cause of ctx's end.
func (c *Cluster) WaitIdle(ctx context.Context) error {
	busy := ""
	err := c.await(ctx, func(ctx context.Context, nudge bool) (done bool, err error) {
		busy = ""
		for _, b := range c.up() {
			if err := b.SettleDelays(ctx); err != nil {
				return false, err
			}
			for _, name := range b.ConsumerGroups() {
				g, online := b.ConsumerGroup(name)
				if !online || g.Broadcasting() {
					continue
				}
				for _, s := range g.Subscriptions {
					if lag := lagOf(b, name, s.Topic); lag > 0 {
						busy = fmt.Sprintf("group %s has %d messages of %s to finish", name, lag, s.Topic)
						if nudge {
							b.ReleasePulls(name, s.Topic)
						}
					}
				}
			}
		}
		return busy == "", nil
	})
	if err != nil && busy != "" {
		err = fmt.Errorf("%s: %w", busy, err)
	}
	if err != nil {
		return fmt.Errorf("testbroker: %w", err)
	}
	return nil
}

// lagOf is what a broker has of a topic that a group has not finished.
func lagOf(b *broker.Broker, group, topic string) (lag int64) {
	for _, id := range b.Store().Queues(topic) {
		from, ok := b.Offset(group, topic, id)
		if first := b.Store().MinOffset(topic, id); !ok || from < first {
			from = first
		}
		lag += max(b.Store().MaxOffset(topic, id)-from, 0)
	}
	return lag
}

// How often await looks. What is waited for comes about in clients, which do
// not say so; looking costs little.
const (
	firstLook  = time.Millisecond
	lastLook   = 50 * time.Millisecond
	nudgeEvery = 3 // looks
)

// await looks again and again, in turn with others, until look says that it is
// done. With nudge look has consumers say how far they are.
func (c *Cluster) await(ctx context.Context, look func(ctx context.Context, nudge bool) (done bool, err error)) error {
	pause := firstLook
	t := time.NewTimer(pause)
	defer t.Stop()
	for i := 0; ; i++ {
		done := false
		err := c.inTurn(func(turn context.Context) (err error) {
			done, err = look(turn, i%nudgeEvery == nudgeEvery-1)
			return err
		})
		if done || err != nil {
			return err
		}
		select {
		case <-t.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		pause = min(2*pause, lastLook)
		t.Reset(pause)
	}
}
