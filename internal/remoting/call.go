package remoting

import (
	"context"
	"math"
	"time"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Call sends a request and waits for the answer, whatever its code. The frame
// is the caller's to keep. Without a deadline in ctx Config.CallTimeout
// applies. Errors: [ErrTimeout] when the deadline passed, the cause of ctx when
// it was cancelled, [ErrGoAway], [ErrFrameTooLarge], or a [*ConnError].
func (c *Conn) Call(ctx context.Context, req *wire.Command) (*wire.Frame, error) {
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = c.cfg.Clock.Now().Add(c.cfg.CallTimeout)
	}
	if ctx.Err() != nil {
		return nil, ctxError(ctx)
	}
	x := &call{command: command{req, c.cfg, 0}, done: make(chan struct{})}
	t, err := c.Start(x, deadline, Inline)
	if err != nil {
		return nil, err
	}
	select {
	case <-x.done:
	case <-ctx.Done():
		if c.Cancel(t) {
			return nil, ctxError(ctx)
		}
		<-x.done // Done is being called right now
	}
	return x.frame, x.err
}

// CallOneway sends a request that wants no answer and never waits: if the
// output buffer is full it returns [ErrBusy].
func (c *Conn) CallOneway(req *wire.Command) error {
	return c.Oneway(command{req, c.cfg, wire.FlagOneway}, time.Time{}, Try)
}

// ctxError is ErrTimeout for a deadline and the cause for anything else.
func ctxError(ctx context.Context) error {
	if cause := context.Cause(ctx); cause != context.DeadlineExceeded {
		return cause
	}
	return ErrTimeout
}

// command makes an Appender of a wire.Command.
type command struct {
	req  *wire.Command
	cfg  *Config
	flag int32
}

// AppendFrame implements Appender.
func (c command) AppendFrame(dst []byte, opaque int32) []byte {
	h := wire.Head{Flag: c.flag, Opaque: opaque, Encoding: c.cfg.Encoding, Signer: c.cfg.Signer}
	if c.req.Code > math.MaxInt16 {
		h.Encoding = wire.JSON // the binary form has 16 bits for the code
	}
	return c.req.Append(dst, h)
}

// call is the Exchange of Conn.Call.
type call struct {
	command
	done  chan struct{}
	frame *wire.Frame
	err   error
}

// Done implements Exchange.
func (x *call) Done(f *wire.Frame, err error) {
	if x.err = err; err == nil {
		x.frame = f.Clone()
	}
	close(x.done)
}

var _ Exchange = (*call)(nil)
