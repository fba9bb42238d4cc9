package remoting

import (
	"log/slog"
	"time"

	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Defaults of [Config].
const (
	DefaultIdleTimeout = 120 * time.Second // as Apache's client and server
	DefaultCallTimeout = 3 * time.Second
	DefaultWriteStall  = 10 * time.Second
	DefaultSilence     = 3 * time.Second
	DefaultHighWater   = 512 << 10 // well below keepBuffer, so that a full buffer is used again
	DefaultMaxOutput   = 64 << 20
	DefaultReadBuffer  = 256 << 10
)

// Config is what all connections of a server or a pool have in common. The
// zero value is usable: every field has a default.
type Config struct {
	// MaxFrame is the largest frame in bytes, length field included, that is
	// accepted or sent. Zero means wire.DefaultMaxFrame (16 MiB). A peer that
	// announces more loses its connection before anything is allocated.
	MaxFrame int

	// IdleTimeout closes a connection on which nothing moved in either
	// direction for this long while no call is pending. Zero means 120 s,
	// negative means never. It is checked at an eighth of its length.
	IdleTimeout time.Duration

	// CallTimeout bounds a [Conn.Call] whose context has no deadline. Zero
	// means 3 s.
	CallTimeout time.Duration

	// WriteStall closes a connection whose peer took not a byte for this long
	// while there was something to write. Zero means 10 s, negative means
	// never.
	WriteStall time.Duration

	// Silence closes a connection when a call times out on it and nothing at
	// all arrived for this long while calls were pending: the peer or the way
	// to it is dead although TCP has not noticed. Zero means 3 s in a [Pool]
	// and never in a [Server]; negative means never.
	Silence time.Duration

	// HighWater is how many bytes of output may be queued before Start and
	// Oneway wait for room. Zero means 512 KiB.
	HighWater int

	// MaxOutput is how many bytes of output, late replies included, may be
	// queued before the peer counts as dead. Zero means 64 MiB.
	MaxOutput int

	// ReadBuffer is the size up to which the input buffer grows with traffic:
	// 256 KiB if zero, at least 16 KiB. For a larger frame it grows further, as
	// the bytes arrive, and shrinks again.
	ReadBuffer int

	// Encoding is the header encoding of [Conn.Call] and [Conn.CallOneway].
	// Codes that the binary form cannot carry (above 32767) are sent as JSON.
	// Replies always have the encoding of their request.
	Encoding wire.Encoding

	// Signer signs the requests of Call and CallOneway. Nil: unsigned.
	Signer wire.Signer

	// Handler serves the peer's requests, usually a [Mux]'s Serve. Nil answers
	// every request with code 3.
	Handler Handler

	// OnOpen is called once for each connection before its first frame is
	// read. OnClose is called once after the last Handler call on the
	// connection's reader has returned and all pending calls have failed, with
	// the cause. Both run on the connection's reader with no lock held.
	OnOpen  func(*Conn)
	OnClose func(*Conn, error)

	// Clock is the time by which deadlines and idle connections are judged.
	// Nil means the machine's, which is right for sockets even in a server
	// whose own clock is moved by hand, unless closing idle peers is what is
	// being tested.
	Clock clock.Clock

	// Logger gets panics of handlers (Error) and lost connections (Debug).
	// Nil discards.
	Logger *slog.Logger
}

// orDefault is v, or the default for zero, or zero for "never".
func orDefault(v, def time.Duration) time.Duration {
	switch {
	case v == 0:
		return def
	case v < 0:
		return 0
	}
	return v
}

func (c Config) withDefaults() *Config {
	c.IdleTimeout = orDefault(c.IdleTimeout, DefaultIdleTimeout)
	c.WriteStall = orDefault(c.WriteStall, DefaultWriteStall)
	c.Silence = orDefault(c.Silence, 0)
	if c.MaxFrame <= 0 {
		c.MaxFrame = wire.DefaultMaxFrame
	}
	if c.CallTimeout <= 0 {
		c.CallTimeout = DefaultCallTimeout
	}
	if c.HighWater <= 0 {
		c.HighWater = DefaultHighWater
	}
	if c.MaxOutput <= 0 {
		c.MaxOutput = DefaultMaxOutput
	}
	if c.ReadBuffer <= 0 {
		c.ReadBuffer = DefaultReadBuffer
	}
	c.ReadBuffer = max(c.ReadBuffer, firstBuffer)
	if c.Clock == nil {
		c.Clock = clock.Real()
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &c
}
