package trans

import (
	"sync"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

// progress is how far the two queues are done with, as the group's offsets say.
// They must not be ahead of the log: what they count as decided would never be
// asked about if the machine lost its power before the op record was on disk.
// So a state becomes the offsets once the log is flushed up to what it counts.
type progress struct {
	mu       sync.Mutex // a leaf
	end      int64      // of the last record that decides something
	pending  bool
	half, op int64 // state that waits for the log to be flushed up to upTo
	upTo     int64
}

// wrote notes a record that decides something.
func (p *progress) wrote(end int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end = max(p.end, end)
}

func (p *progress) waits() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pending
}

// take is the state to be published now, given the newest one.
func (p *progress) take(half, op, flushed int64) (int64, int64, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.pending || p.end <= flushed {
		p.pending, p.half, p.op, p.upTo = true, half, op, p.end
	}
	if p.upTo > flushed {
		return 0, 0, false
	}
	p.pending = false
	return p.half, p.op, true
}

// advance moves the group's offsets.
func (s *Service) advance() {
	s.mu.Lock()
	half, op := s.doneWith()
	s.mu.Unlock()
	half, op, ok := s.progress.take(half, op, s.store.FlushedTo())
	if !ok {
		return
	}
	s.commit(wire.TopicHalf, half)
	s.commit(wire.TopicOpHalf, op)
}

func (s *Service) commit(topic string, offset int64) {
	if old, ok := s.cfg.Offsets.Offset([]byte(Group), []byte(topic), 0); ok && old == offset {
		return
	}
	if offset > 0 {
		s.cfg.Offsets.Commit([]byte(Group), []byte(topic), 0, offset)
	}
}
