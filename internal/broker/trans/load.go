package trans

import (
	"context"

	"github.com/gorocketmq/rocketmq/internal/broker/store/cq"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// load makes the table from the log: the half messages from the group's offset
// on that no op record from its offset on lists. The offsets may be behind,
// never ahead: what is looked at again is still decided.
func (s *Service) load(ctx context.Context) error {
	if err := s.store.WaitDispatched(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	s.reset()
	s.read, s.opNext = s.start(wire.TopicHalf), s.start(wire.TopicOpHalf)
	s.mu.Unlock()
	decided := s.loadOps()
	for {
		next, u, ok := s.store.NextUnit(wire.TopicHalf, 0, s.read)
		if s.read = next; !ok {
			break
		}
		s.see(u, decided)
	}
	for _, e := range s.byOffset {
		e.inherited = true
	}
	return nil
}

// loadOps reads the op queue and returns the half offsets that it lists.
func (s *Service) loadOps() map[int64]struct{} {
	decided := map[int64]struct{}{}
	s.opNext = max(s.opNext, s.store.MinOffset(wire.TopicOpHalf, 0))
	for next := s.opNext; ; next++ {
		at, u, ok := s.store.NextUnit(wire.TopicOpHalf, 0, next)
		for ; next < at; next++ {
			s.ops[next] = -1 // lost
		}
		if !ok {
			return decided
		}
		last := int64(-1)
		s.store.Record(u, func(r *wire.Record) {
			eachOp(r.Body, func(n int64) {
				decided[n] = struct{}{}
				last = max(last, n)
			})
		})
		s.ops[at] = last
	}
}

// start is where the group goes on with a topic.
func (s *Service) start(topic string) int64 {
	if off, ok := s.cfg.Offsets.Offset([]byte(Group), []byte(topic), 0); ok {
		return min(off, s.store.MaxOffset(topic, 0))
	}
	return s.store.MinOffset(topic, 0)
}

func (s *Service) inheritedAny() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.byOffset) > 0
}

// readHalves sees the half messages that have come.
func (s *Service) readHalves() {
	for {
		at, u, ok := s.store.NextUnit(wire.TopicHalf, 0, s.read) // only this goroutine changes it
		if at != s.read {
			s.mu.Lock()
			s.read = at
			s.mu.Unlock()
		}
		if !ok {
			return
		}
		s.see(u, nil)
	}
}

// see takes the half message at s.read, whose unit is u, into the table. loaded
// is what the op queue lists, while that is read.
func (s *Service) see(u cq.Unit, loaded map[int64]struct{}) {
	at := s.read
	if _, ok := loaded[at]; ok || s.known(at) {
		s.pass(nil)
		return
	}
	var h half
	mine, original := false, true
	there := s.store.Record(u, func(r *wire.Record) {
		h.Record = *r
		if mine = h.read(); mine {
			_, decided := loaded[h.prepared] // Apache's op records may list the original
			original = !decided || h.prepared < 0
			if original {
				s.pass(&h)
			}
		}
	})
	if !there || !mine {
		s.cfg.Log.Error("half message cannot be decided, skipping it", "offset", at, "phy", u.Phy, "inLog", there)
	}
	if !there || !mine || !original {
		s.pass(nil)
	}
}

// known tells whether the half message at an offset need not be looked at.
func (s *Service) known(at int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, done := s.done[at]
	return done || s.byOffset[at] != nil
}

// pass moves on behind the half message at s.read. h is what it is, nil if that
// is of no interest.
func (s *Service) pass(h *half) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.read
	s.read++
	if _, ok := s.done[at]; ok {
		delete(s.done, at)
	} else if e := s.byOffset[at]; e != nil {
		s.list(e) // a copy, or somebody was faster to decide
	} else if e := s.sooner(h); e != nil {
		if e.offset < at { // else a newer copy is known already
			s.move(e, at, h.PhyOffset, h.Size)
			e.checks = max(e.checks, h.checks)
		}
	} else if h != nil {
		s.list(s.add(h, s.firstDue(h)))
	}
}

// sooner is the transaction that h, if that is a copy, is one more copy of; nil if
// there is none yet.
func (s *Service) sooner(h *half) *entry {
	if h == nil || h.prepared < 0 {
		return nil
	}
	if e := s.byOrigin[h.prepared]; e != nil {
		return e
	}
	return s.byOffset[h.prepared]
}

// firstDue is when a half message that has just been seen is to be looked at.
func (s *Service) firstDue(h *half) int64 {
	wait := s.cfg.Timeout
	if h.immunity > 0 {
		wait = h.immunity
	}
	due := h.since() + wait.Milliseconds()
	if h.checks > 0 {
		due = max(due, h.StoreTime+s.cfg.Interval.Milliseconds())
	}
	return due
}
