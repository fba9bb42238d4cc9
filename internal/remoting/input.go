package remoting

import (
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

const firstBuffer = 16 << 10 // an idle connection does not need more

// input is the read buffer of a connection. Frames are decoded where they lie
// in it. It starts small, doubles up to max while reads fill it, and beyond max
// only for a frame that is larger, and then only as its bytes arrive: a length
// that lies costs no memory.
type input struct {
	buf  []byte
	r, w int // buf[r:w] has been read from the socket and not been used
	max  int
	full bool // the last read filled the buffer
}

// prime puts bytes that have been read already in front.
func (in *input) prime(first []byte) {
	if len(first) > 0 {
		in.buf = make([]byte, firstBuffer)
		in.w = copy(in.buf, first)
	}
}

// size is the size of the frame at r, zero if less than its head is there.
func (in *input) size(limit int) (int, error) {
	if in.w-in.r < wire.FrameHead {
		return 0, nil
	}
	return wire.FrameSize(in.buf[in.r:in.w], limit)
}

// complete reports whether a whole frame, or a bad one, is buffered.
func (in *input) complete(limit int) bool {
	n, err := in.size(limit)
	return err != nil || n > 0 && n <= in.w-in.r
}

// next is the next frame. The bytes are valid until the following call.
// filled is called after each read.
func (in *input) next(nc net.Conn, limit int, filled func()) ([]byte, error) {
	for {
		n, err := in.size(limit)
		if err != nil {
			return nil, err
		}
		if n > 0 && n <= in.w-in.r {
			frame := in.buf[in.r : in.r+n : in.r+n]
			in.r += n
			return frame, nil
		}
		in.makeRoom(n)
		got, err := nc.Read(in.buf[in.w:])
		in.w += got
		in.full = in.w == len(in.buf)
		if got > 0 {
			filled()
			continue
		}
		if err != nil {
			return nil, in.ended(err)
		}
	}
}

// ended says what a failed read means.
func (in *input) ended(err error) error {
	if in.w == in.r || errors.Is(err, net.ErrClosed) {
		return err
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("%w after %d bytes of an incomplete frame", err, in.w-in.r)
}

// makeRoom moves what is left to the front and sees to it that there is space
// behind it. need is the size of the frame to come, zero if it is unknown.
func (in *input) makeRoom(need int) {
	have, size := in.w-in.r, len(in.buf)
	switch {
	case size == 0:
		size = firstBuffer
	case have == size && need > in.max: // as its bytes arrive
		size = min(2*size, need)
	case size > in.max && need <= in.max && have < in.max: // the large frame is done with
		size = in.max
	case size < in.max && (in.full || need > size):
		size = min(max(2*size, need), in.max)
	}
	if size != len(in.buf) {
		b := make([]byte, size)
		copy(b, in.buf[in.r:in.w])
		in.buf = b
	} else if in.r > 0 {
		copy(in.buf, in.buf[in.r:in.w])
	}
	in.r, in.w, in.full = 0, have, false
}

// replyBatch is after how many answers they are written although more requests
// are at hand: a peer that sent a hundred has something to do meanwhile.
const replyBatch = 32

// read is the reader goroutine.
func (c *Conn) read() {
	if c.cfg.OnOpen != nil {
		c.cfg.OnOpen(c)
	}
	filled := func() { c.received.Add(1) }
	for {
		if c.unsent >= replyBatch || !c.in.complete(c.cfg.MaxFrame) {
			c.writeReplies()
		}
		b, err := c.in.next(c.nc, c.cfg.MaxFrame, filled)
		if err == nil {
			err = c.frame.Decode(b)
		}
		if err != nil {
			c.fail("read", err)
			break
		}
		if c.frame.IsResponse() {
			c.answer()
		} else {
			c.serve()
		}
	}
	<-c.ended // whoever else ended the connection may still be at it
	c.sweeper.remove(c)
	c.cfg.Logger.Debug("connection closed", "addr", c.peer, "err", c.err)
	if c.cfg.OnClose != nil {
		c.cfg.OnClose(c, c.err)
	}
}

// answer hands the frame to the call that waits for it. One that nobody waits
// for is dropped: its call has timed out.
func (c *Conn) answer() {
	x := c.pend.take(c.frame.Opaque)
	if c.frame.Code == wire.RespGoAway {
		c.retired.Store(true)
		c.watch() // closes it once it is empty
		if x != nil {
			x.Done(nil, ErrGoAway)
		}
		return
	}
	if x != nil {
		x.Done(&c.frame, nil)
	}
}

// writeReplies writes what handlers have answered on the reader. It is called
// when the reader would wait for input, so one write takes all answers to one
// read.
func (c *Conn) writeReplies() {
	if c.unsent == 0 {
		return
	}
	c.unsent = 0
	if c.out.claim() {
		c.launch(Inline, false)
	}
}
