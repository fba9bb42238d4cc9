package remoting

import (
	"context"
	"errors"
	"fmt"
	"io"
)

var (
	// ErrConnection matches (errors.Is) every error that says a connection
	// could not be made or has died, see [ConnError].
	ErrConnection = errors.New("connection failed")

	// ErrClosed is the cause when this side closed the connection, the pool or
	// the server.
	ErrClosed = errors.New("closed")

	// ErrTimeout says that a call's deadline passed before its answer came. It
	// matches context.DeadlineExceeded.
	ErrTimeout error = timeoutError{}

	// ErrGoAway says that the peer is about to shut down (code 1500) and that
	// the request was not carried out: repeat it on a new connection. The
	// connection it came from is retired, [Pool.Get] dials a new one.
	ErrGoAway = errors.New("peer is shutting down (GO_AWAY), repeat the request on a new connection")

	// ErrBusy says that the connection's output buffer is full and that the
	// caller asked not to wait for room ([Try]).
	ErrBusy = errors.New("output buffer of the connection is full")

	// ErrFrameTooLarge says that a request is larger than the connection's
	// frame limit. It was not sent and the connection lives on.
	ErrFrameTooLarge = errors.New("frame is larger than the limit")

	// ErrIdle is the cause when a connection was closed because nothing moved
	// in either direction for the idle timeout.
	ErrIdle = errors.New("idle for too long")

	// ErrStalled is the cause when the peer stopped reading what was sent.
	ErrStalled = errors.New("peer does not read")

	// ErrSilent is the cause when a call timed out on a connection from which
	// nothing at all had arrived for the silence limit.
	ErrSilent = errors.New("peer has gone silent")

	// ErrOverflow is the cause when more replies queued up for a peer than
	// Config.MaxOutput allows.
	ErrOverflow = errors.New("too much output queued, peer does not read")
)

type timeoutError struct{}

func (timeoutError) Error() string   { return "deadline passed before the answer came" }
func (timeoutError) Unwrap() error   { return context.DeadlineExceeded }
func (timeoutError) Timeout() bool   { return true }
func (timeoutError) Temporary() bool { return true }

// ConnError is a connection that could not be made or has died. It matches
// [ErrConnection] and wraps its cause.
type ConnError struct {
	Addr string // the peer, host:port
	Op   string // dial, handshake, read, write, close
	Err  error  // the cause, never nil
}

// Error implements error.
func (e *ConnError) Error() string {
	if e.Op == "read" && e.Err == io.EOF {
		return fmt.Sprintf("connection to %s: closed by the peer", e.Addr)
	}
	return fmt.Sprintf("connection to %s: %s: %v", e.Addr, e.Op, e.Err)
}

// Unwrap returns the cause.
func (e *ConnError) Unwrap() error { return e.Err }

// Is makes every ConnError match [ErrConnection].
func (e *ConnError) Is(target error) bool { return target == ErrConnection }
