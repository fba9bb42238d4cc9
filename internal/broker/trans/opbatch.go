package trans

import "sync"

// opBatch collects half offsets for op records: all of them if op records are
// written together, else those whose record could not be written at once.
type opBatch struct {
	mu     sync.Mutex // a leaf
	halves []int64
	bytes  int
	at     int64 // ms, when they are to be written
}

// collect adds an offset.
func (s *Service) collect(half int64) {
	wait := s.cfg.OpInterval.Milliseconds()
	if wait <= 0 {
		wait = againMs
	}
	b := &s.batch
	b.mu.Lock()
	if len(b.halves) == 0 {
		b.at = s.now() + wait
	}
	b.halves = append(b.halves, half)
	b.bytes += len(opBody(nil, []int64{half})) + 1
	full := b.bytes > s.cfg.OpSize
	first := len(b.halves) == 1
	if full {
		b.at = s.now()
	}
	b.mu.Unlock()
	if full || first {
		s.ask()
	}
}

// due is when the batch is to be written, in ms; 0: it is empty.
func (b *opBatch) due() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.halves) == 0 {
		return 0
	}
	return b.at
}

// writeBatch writes op records for what has been collected, if it is due or all
// is asked for.
func (s *Service) writeBatch(all bool) {
	b := &s.batch
	for {
		b.mu.Lock()
		if len(b.halves) == 0 || !all && b.at > s.now() {
			b.mu.Unlock()
			return
		}
		n := len(b.halves)
		for n > 1 && len(opBody(nil, b.halves[:n])) > s.cfg.OpSize {
			n /= 2
		}
		some := append([]int64(nil), b.halves[:n]...)
		b.mu.Unlock()
		m := s.opMessage(opBody(nil, some))
		m.NoWait = true
		res, _ := s.cfg.Put(&m, nil)
		if !res.Status.Stored() {
			s.cfg.Log.Error("op record not stored, trying again", "status", res.Status, "err", res.Err)
			b.mu.Lock()
			b.at = s.now() + againMs
			b.mu.Unlock()
			return
		}
		s.wroteOp(res.QueueOffset, res.End, some)
		b.mu.Lock()
		b.halves = append(b.halves[:0], b.halves[n:]...)
		b.bytes = 0
		for _, half := range b.halves {
			b.bytes += len(opBody(nil, []int64{half})) + 1
		}
		b.mu.Unlock()
	}
}

// wroteOp notes an op record.
func (s *Service) wroteOp(offset, end int64, halves []int64) {
	last := int64(-1)
	for _, n := range halves {
		last = max(last, n)
	}
	s.mu.Lock()
	s.ops[offset] = last
	s.mu.Unlock()
	s.progress.wrote(end)
}
