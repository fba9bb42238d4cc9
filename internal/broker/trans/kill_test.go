package trans

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// play is a number of transactions with what their producer knows of them, and
// what it was told by the broker.
type play struct {
	*rig
	reqs      map[string]*wire.EndTransactionRequest
	local     map[string]int32 // outcome of the local transaction; not there: it has none yet
	confirmed map[string]int32 // what the broker has confirmed
	credulous bool             // confirmed rollbacks are not put to the test
}

func newPlay(r *rig) *play {
	return &play{rig: r, reqs: map[string]*wire.EndTransactionRequest{}, local: map[string]int32{}, confirmed: map[string]int32{}}
}

// begin, decide, check: each is a step that the death of the broker may cut
// short. What it answers while it dies is lost.
func (p *play) begin(id string, props ...string) {
	req := p.half(id, props...)
	if !p.isDead() {
		p.reqs[id] = req
	}
}

func (p *play) decide(id string, what int32) {
	req := p.reqs[id]
	if p.isDead() || req == nil {
		return
	}
	p.local[id] = what
	p.sendEnd(id, req, what)
}

func (p *play) sendEnd(id string, req *wire.EndTransactionRequest, what int32) {
	got := p.end(req, what)
	if got.code == wire.RespSuccess && !p.isDead() {
		p.confirmed[id] = what
	}
}

// answer answers the checks that have come. A transaction without an outcome has
// been rolled back by its data base meanwhile.
func (p *play) answer() {
	for _, q := range p.taken() {
		if p.isDead() {
			return
		}
		id := q.Header.MsgID
		what, ok := p.local[id]
		switch {
		case p.confirmed[id] == wire.SysTranRollback && !p.credulous:
			what = wire.SysTranCommit // to see whether the broker can be talked into it
		case !ok:
			what = wire.SysTranRollback
			p.local[id] = what
		}
		p.sendEnd(id, requestOf(q), what)
	}
}

func (p *play) wait(d time.Duration) {
	if !p.isDead() {
		p.pass(d)
		p.answer()
	}
}

// finish lets all be decided, and looks at what came of it.
func (p *play) finish(atMostOnce bool) {
	t := p.t
	t.Helper()
	for i := 0; ; i++ {
		p.settle()
		p.answer()
		p.settle()
		if p.s.Undecided() == 0 {
			break
		}
		require.Less(t, i, 50, "it never ends")
		p.pass(31 * time.Second)
	}
	seen := map[string]int{}
	for _, body := range p.bodies("T") {
		seen[body]++
	}
	givenUp := p.bodies(wire.TopicTranCheckMax)
	for id := range p.reqs {
		switch what := p.local[id]; {
		case slices.Contains(givenUp, id) && p.confirmed[id] == 0:
			// An administrator has to decide.
			require.Zero(t, seen[id], "%s was not committed and delivered", id)
		case p.confirmed[id] == wire.SysTranRollback || what == wire.SysTranRollback:
			require.Zero(t, seen[id], "%s was rolled back and delivered", id)
		case what == wire.SysTranCommit:
			require.GreaterOrEqual(t, seen[id], 1, "%s was committed and is lost", id)
			if atMostOnce {
				require.Equal(t, 1, seen[id], "%s was delivered more than once", id)
			}
		}
		delete(seen, id)
	}
	for id, n := range seen {
		require.Equal(t, wire.SysTranCommit, p.local[id], "%s was delivered %d times", id, n)
	}
}

// script goes through all that can be done with a transaction.
func (p *play) script(between func()) {
	steps := []func(){
		func() { p.begin("commit") },
		func() { p.begin("rollback") },
		func() { p.begin("check, commit", wire.PropCheckImmunitySeconds, "2") },
		func() { p.begin("check, rollback") },
		func() { p.begin("nothing") },
		func() { p.begin("given up, commit", wire.PropCheckImmunitySeconds, "600") },
		func() { p.decide("commit", wire.SysTranCommit) },
		func() { p.decide("rollback", wire.SysTranRollback) },
		func() { p.local["check, commit"] = wire.SysTranCommit },
		func() { p.local["check, rollback"] = wire.SysTranRollback },
		func() { p.wait(2 * time.Second) },
		func() { p.wait(4 * time.Second) },
		func() { p.begin("second") },
		func() { p.decide("second", wire.SysTranCommit) },
		func() { p.set("PG", NoProducer) },
		func() { p.wait(600 * time.Second) },
		func() { p.s.cfg.Max = 0 },
		func() { p.wait(31 * time.Second) },
		func() { p.decide("given up, commit", wire.SysTranCommit) },
		func() { p.set("PG", Sent) },
	}
	for _, f := range steps {
		if p.isDead() {
			return
		}
		f()
		between()
	}
}

// TestBrokerDeathAtEachStep kills the broker with each record that it writes, at
// different states of its offsets, and with op records of both forms.
func TestBrokerDeathAtEachStep(t *testing.T) {
	for _, c := range []struct {
		name     string
		together bool
		saved    func(step int) bool
	}{
		{"offsets never saved", false, func(int) bool { return false }},
		{"offsets saved once", false, func(step int) bool { return step == 8 }},
		{"offsets always saved", false, func(int) bool { return true }},
		{"op records together", true, func(int) bool { return false }},
	} {
		life := func(t *testing.T, record int) int {
			r := newRig(t, func(cfg *Config) {
				if c.together {
					cfg.OpInterval = 3 * time.Second
				}
			}, func(c *store.Config) { c.SyncFlush = true }) // so that offsets may be saved at any time
			r.dieAt = record
			p := newPlay(r)
			p.credulous = c.together // what is collected dies with the broker
			steps := 0
			p.script(func() {
				if steps++; !r.isDead() && c.saved(steps) {
					r.settle()
					r.s.Tick()
					r.settle()
					r.save()
				}
			})
			records := r.puts
			p.taken() // on their way when the broker died
			p.set("PG", Sent)
			p.restart()
			p.finish(!c.together)
			p.save()
			p.restart()
			p.finish(!c.together) // all is found decided
			return records
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			n := life(t, 0)
			require.GreaterOrEqual(t, n, 14)
			for record := 1; record <= n; record++ {
				t.Run(fmt.Sprintf("record %d", record), func(t *testing.T) { life(t, record) })
			}
		})
	}
}

// TestPowerLoss: with synchronous flush what was confirmed holds, whatever the
// disk had of the rest.
func TestPowerLoss(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			disk := mfile.NewCrash()
			r := newRig(t, nil, func(c *store.Config) { c.FS, c.SyncFlush = disk, true })
			rng := rand.New(rand.NewPCG(seed, 1))
			r.dieAt = 1 + rng.IntN(40)
			p := newPlay(r)
			for i := range 30 {
				if r.isDead() {
					break
				}
				id := name(i)
				// Its producer has the answer once it is on disk.
				p.begin(id)
				r.settle()
				switch rng.IntN(3) {
				case 0:
					p.decide(id, wire.SysTranCommit)
				case 1:
					p.decide(id, wire.SysTranRollback)
				}
				if rng.IntN(4) == 0 && !r.isDead() {
					r.s.Tick()
					r.settle()
					r.save()
				}
			}
			r.kill()
			disk.PowerLoss(seed)
			p.taken()
			for id := range p.reqs {
				if p.confirmed[id] == 0 && p.local[id] == wire.SysTranCommit {
					delete(p.local, id) // its producer has seen a failure and gives up
				}
			}
			p.start()
			p.finish(false)
		})
	}
}
