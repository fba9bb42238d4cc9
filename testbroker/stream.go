package testbroker

import "github.com/gorocketmq/rocketmq/internal/wire"

// stream finds the frames in the bytes that go one way over a connection. As
// long as nobody wants to see frames, bytes are passed on as they come and only
// the borders are kept track of ([stream.skip]); else whole frames are taken out
// ([stream.next]). It may change over at any border. Bytes that are no frames
// are passed on for good: it is for the server to refuse them.
type stream struct {
	left    int    // bytes that the frame being passed on still has
	head    []byte // the beginning of one, less than its size takes, that was passed on
	begun   []byte // the beginning of a frame that is looked at
	foreign bool   // the peer speaks something else
}

// mid tells whether the last bytes that were passed on are not the end of a frame.
func (s *stream) mid() bool { return s.left > 0 || len(s.head) > 0 }

// skip notes bytes that have been passed on unseen.
func (s *stream) skip(b []byte) {
	for len(b) > 0 && !s.foreign {
		if s.left > 0 {
			n := min(s.left, len(b))
			s.left -= n
			b = b[n:]
			continue
		}
		n := min(wire.FrameHead-len(s.head), len(b))
		s.head = append(s.head, b[:n]...)
		b = b[n:]
		if len(s.head) == wire.FrameHead {
			size, err := wire.FrameSize(s.head, wire.DefaultMaxFrame)
			s.foreign = err != nil
			s.left = size - wire.FrameHead
			s.head = s.head[:0]
		}
	}
}

// add takes the bytes that follow and returns those that belong to what is
// passed on unseen. The others wait for next.
func (s *stream) add(b []byte) (pass []byte) {
	n := 0
	for n < len(b) && s.mid() && !s.foreign {
		k := s.left
		if k == 0 {
			k = wire.FrameHead - len(s.head)
		}
		k = min(k, len(b)-n)
		s.skip(b[n : n+k])
		n += k
	}
	if s.foreign {
		return b
	}
	s.begun = append(s.begun, b[n:]...)
	return b[:n]
}

// next takes the next whole frame out of what was added. What is no frame
// comes out, too, with ok false; nil means that the rest is still to come. The
// bytes are the caller's.
func (s *stream) next() (frame []byte, ok bool) {
	if len(s.begun) < wire.FrameHead {
		return nil, true
	}
	size, err := wire.FrameSize(s.begun, wire.DefaultMaxFrame)
	if err != nil {
		s.foreign = true
		frame, s.begun = s.begun, nil
		return frame, false
	}
	if len(s.begun) < size {
		return nil, true
	}
	frame = append([]byte(nil), s.begun[:size]...)
	s.begun = s.begun[:copy(s.begun, s.begun[size:])]
	return frame, true
}
