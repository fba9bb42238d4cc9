package timer

import "math"

// recover reads the log. What it keeps of it is on disk, and of messages that
// the commit log has.
func (s *Store) recover(r recovered) error {
	cfg := &s.cfg
	limit := int64(math.MaxInt64)
	switch {
	case r.ours:
		s.start, limit = r.saved, r.saved.Log
		if r.noted != nil {
			s.start = *r.noted
		}
	default:
		s.start = unknown(cfg.Now, cfg.Precision)
		s.start.Time = max(s.start.Time, r.java.read)
	}
	var last Unit
	units := 0
	err := s.log.scan(limit, func(pos int64, u *Unit) bool {
		if u.Phy+int64(u.Size) > cfg.CommitEnd {
			return false
		}
		if t := s.slotOf(u.Time()); t+cfg.Precision <= s.start.Time {
			s.fileHas(pos, t)
		} else {
			if x, ok := s.slots[t]; ok && u.Prev != x.last && u.Prev >= 0 {
				cfg.Logger.Error("timer log is damaged: a unit does not point to the one before it in its slot", "pos", pos, "have", u.Prev, "want", x.last)
				return false
			}
			s.link(t, pos, u.Magic)
			if u.Magic&MagicDelete != 0 {
				s.pending[u.TopicHash]--
			} else {
				s.pending[u.TopicHash]++
			}
		}
		last, units = *u, units+1
		return true
	})
	if err != nil {
		return err
	}
	if s.wheel != nil && len(s.slots) > 0 {
		if err := s.makeWheel(); err != nil {
			return err
		}
	}
	for t, x := range s.slots {
		s.put(t, x)
	}
	s.state = s.start
	s.state.Queue = min(max(s.queueOffset(r, units, &last), cfg.QueueMin), cfg.QueueMax)
	s.state.Phy, s.state.Log = cfg.CommitEnd, s.log.end
	s.start.Queue = min(s.start.Queue, cfg.QueueMax)
	if !r.ours {
		s.start.Queue = s.state.Queue // of what comes behind nobody knows
	}
	return nil
}

// queueOffset is where to go on reading messages.
func (s *Store) queueOffset(r recovered, units int, last *Unit) int64 {
	if r.ours && s.log.end == r.saved.Log {
		return r.saved.Queue
	}
	at := int64(0) // all that there is
	if units > 0 {
		off, ok := s.cfg.QueueOffset(last.Phy, last.Size)
		if ok {
			at = off + 1
		} else {
			s.cfg.Logger.Error("timer log is damaged: its last unit is of no message; reading all of them again", "phy", last.Phy)
		}
	}
	if r.ours {
		s.cfg.Logger.Error("timer log ends early; reading its messages again", "end", s.log.end, "want", r.saved.Log, "offset", at)
		return min(at, r.saved.Queue)
	}
	// Apache's broker notes the log's end before it flushes it: what counts are
	// the units. Messages that it delivered at once have none, those it counts in
	// the checkpoint alone, which may be ahead of the log after a crash of the
	// machine.
	if s.cfg.Clean || units == 0 {
		at = max(at, min(r.java.queue, r.java.master))
	}
	return at
}
