package trans

import (
	"context"

	"github.com/gorocketmq/rocketmq/internal/broker/store/cq"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

const (
	// againMs is after how many ms what failed is tried again.
	againMs = 1000
	// maxLag is by how many half messages the oldest undecided one may lag
	// behind the end of its queue.
	maxLag = 10_000
)

// checkDue looks at all transactions that are due. Each is looked at once a
// round.
func (s *Service) checkDue(ctx context.Context) {
	for ctx.Err() == nil {
		s.mu.Lock()
		now := s.now()
		if len(s.due) == 0 || s.due[0].due > now {
			s.mu.Unlock()
			return
		}
		e := s.due[0]
		if e.busy {
			s.setDue(e, now+againMs) // it is being decided
			s.mu.Unlock()
			continue
		}
		e.busy = true
		s.mu.Unlock()
		s.look(e, now)
		s.mu.Lock()
		s.let(e)
		s.mu.Unlock()
	}
}

// look decides what is to be done about a transaction that is due, and does it.
// The caller holds e.
func (s *Service) look(e *entry, now int64) {
	log := s.cfg.Log.With("group", e.group.name, "halfOffset", e.offset)
	inherited := e.inherited
	e.inherited = false
	found := s.record(e, func(h *half) {
		if inherited && s.outcome(h) == wasCommitted {
			// The process before came to its end between the message and
			// the op record.
			log.Info("transaction has been committed already")
			s.decide(e, h.QueueOffset)
			return
		}
		if e.checks >= s.cfg.Max || now-e.since > s.cfg.Reserved.Milliseconds() {
			s.discard(e, h, now)
			return
		}
		asked, whom := s.cfg.Ask(e.group.name, h.question(e.checks+1))
		switch asked {
		case Sent:
			s.sent.Add(1)
			s.mu.Lock()
			e.checks++
			s.setWaiting(e, false)
			s.setDue(e, now+s.cfg.Interval.Milliseconds())
			s.asking(e, whom)
			s.mu.Unlock()
		case Busy:
			s.postpone(e, now+againMs, false)
		case NoProducer:
			s.postpone(e, now+s.cfg.Interval.Milliseconds(), true)
		}
	})
	if !found {
		log.Error("half message is not in the log any more, its transaction is lost", "phy", e.phy)
		s.mu.Lock()
		s.remove(e)
		s.mu.Unlock()
	}
}

func (s *Service) postpone(e *entry, due int64, waiting bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setWaiting(e, waiting)
	s.setDue(e, due)
}

// record calls f with the newest copy of a half message. It is false if that
// is not there.
func (s *Service) record(e *entry, f func(h *half)) (ok bool) {
	there := s.store.Record(cq.Unit{Phy: e.phy, Size: e.size}, func(r *wire.Record) {
		h := half{Record: *r}
		if ok = h.read(); ok {
			f(&h)
		}
	})
	return there && ok
}

// discard gives a transaction up: the message is kept for an administrator.
func (s *Service) discard(e *entry, h *half, now int64) {
	s.cfg.GiveUp()
	m := h.givenUp()
	res, _ := s.cfg.Put(&m, nil)
	if !res.Status.Stored() {
		s.cfg.Log.Error("undecided message not put aside, trying again", "status", res.Status, "err", res.Err)
		s.postpone(e, now+againMs, false)
		return
	}
	s.cfg.Log.Warn("transaction given up, its message is in "+wire.TopicTranCheckMax, "group", e.group.name, "halfOffset", e.offset,
		"checks", e.checks, "id", string(h.id))
	s.progress.wrote(res.End)
	s.decide(e, h.QueueOffset)
}

// decide takes a transaction that the service itself has come to the end of out
// of the table. Its op record is written with the next ones.
func (s *Service) decide(e *entry, offset int64) {
	s.mu.Lock()
	s.remove(e)
	s.mu.Unlock()
	s.collect(offset)
}

// renew copies half messages to the end of their queue that others have left
// far behind. So the part of the queue that a start has to read stays short,
// and no log file with an undecided message in it becomes the oldest one. As
// long as most of that part is undecided itself copying would not make it
// shorter.
func (s *Service) renew(ctx context.Context) {
	for ctx.Err() == nil {
		s.mu.Lock()
		e := s.head
		lag := int64(0)
		if e != nil {
			lag = s.read - e.offset
		}
		far := e != nil && (lag > maxLag && lag > 2*int64(len(s.byOffset)) || s.store.FlushedTo()-e.phy > 2*s.store.LogFileSize())
		if !far || e.busy {
			s.mu.Unlock()
			return
		}
		e.busy = true
		origin, checks := e.origin, e.checks
		s.mu.Unlock()
		moved := false
		s.record(e, func(h *half) {
			m := h.copied(origin, checks)
			res, _ := s.cfg.Put(&m, nil)
			if !res.Status.Stored() {
				s.cfg.Log.Error("undecided message not copied, trying again", "status", res.Status, "err", res.Err)
				return
			}
			moved = true
			s.progress.wrote(res.End)
			s.mu.Lock()
			s.move(e, res.QueueOffset, res.PhyOffset, int32(res.End-res.PhyOffset))
			s.mu.Unlock()
		})
		s.mu.Lock()
		s.let(e)
		s.mu.Unlock()
		if !moved {
			return // its check will find out what is wrong
		}
	}
}
