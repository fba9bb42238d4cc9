package testbroker

import (
	"context"
	"fmt"
	"time"

	"github.com/gorocketmq/rocketmq/internal/broker"
)

// CheckTransactions has the brokers that are up ask about all transactions that
// are neither committed nor rolled back, now instead of after 6 s, and returns
// how many checks were sent. The producers answer a moment later: wait for what
// comes of it, or for [Cluster.Undecided]. A transaction whose group has no
// producer at a broker yet is not counted; it is asked about when one comes.
func (c *Cluster) CheckTransactions() int {
	c.helper()
	n := 0
	c.must(c.inTurn(func(ctx context.Context) error {
		for _, b := range c.up() {
			sent, err := b.CheckTransactions(ctx)
			if err != nil {
				return fmt.Errorf("%s: %w", b.Name(), err)
			}
			n += sent
		}
		return nil
	}))
	return n
}

// Undecided returns how many transactions are neither committed nor rolled
// back, nor given up, on the brokers that are up.
func (c *Cluster) Undecided() int {
	c.helper()
	n := 0
	c.must(c.inTurn(func(ctx context.Context) error {
		for _, b := range c.up() {
			if err := b.SettleChecks(ctx); err != nil {
				return fmt.Errorf("%s: %w", b.Name(), err)
			}
			n += b.Undecided()
		}
		return nil
	}))
	return n
}

// answerTime is how long, by the machine's clock, producers have to answer the
// checks of one moment.
const answerTime = 2 * time.Second

// patience is that of one Advance with producers. It ends with the first one that
// does not answer in time, so that they cost no more than that time in all.
type patience struct{ gone bool }

// await waits until all checks that are out have been answered, and tells
// whether they have.
func (p *patience) await(ctx context.Context, b *broker.Broker) bool {
	limit := answerTime
	if p.gone {
		limit = 0
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	p.gone = b.AwaitAnswers(ctx) != nil || p.gone
	return !p.gone
}

// nextCheck has all checks sent that are due, waits for the answers as long as
// there is patience, and tells when the next check is due.
func (c *Cluster) nextCheck(ctx context.Context, p *patience) (next time.Time, ok bool, err error) {
	for _, b := range c.up() {
		if err := b.SettleChecks(ctx); err != nil {
			return next, false, fmt.Errorf("%s: %w", b.Name(), err)
		}
		if p.await(ctx, b) {
			// What was decided is delivered, and asked about no more.
			if err := b.SettleChecks(ctx); err != nil {
				return next, false, fmt.Errorf("%s: %w", b.Name(), err)
			}
		}
		if at, waits := b.NextCheck(); waits && (!ok || at.Before(next)) {
			next, ok = at, true
		}
	}
	return next, ok, nil
}
