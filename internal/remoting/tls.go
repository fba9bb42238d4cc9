package remoting

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"
)

// tlsHandshake is the first byte of a TLS connection. A frame cannot begin
// with it: it would be 350 MB long.
const tlsHandshake = 0x16

var errPlain = errors.New("plain connection, this server wants TLS")

// handshake looks at the first byte of a connection. It returns the TLS
// connection, or the plain one with the byte that has been read.
func (s *Server) handshake(ctx context.Context, raw net.Conn) (net.Conn, []byte, error) {
	if s.cfg.IdleTimeout > 0 {
		_ = raw.SetReadDeadline(time.Now().Add(s.cfg.IdleTimeout))
	}
	first := make([]byte, 1)
	if _, err := raw.Read(first); err != nil {
		return nil, nil, err
	}
	_ = raw.SetReadDeadline(time.Time{})
	if first[0] != tlsHandshake {
		if s.tlsOnly {
			return nil, nil, errPlain
		}
		return raw, first, nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	nc := tls.Server(&primed{raw, first}, s.tls)
	if err := nc.HandshakeContext(ctx); err != nil {
		return nil, nil, err
	}
	return nc, nil, nil
}

// primed is a connection whose first bytes have been read already.
type primed struct {
	net.Conn
	first []byte
}

// Read implements net.Conn.
func (p *primed) Read(b []byte) (int, error) {
	if len(p.first) > 0 {
		n := copy(b, p.first)
		p.first = p.first[n:]
		return n, nil
	}
	return p.Conn.Read(b)
}

// clientTLS is cfg for a connection to addr: without a name of its own the
// certificate is checked against the host that was dialed.
func clientTLS(cfg *tls.Config, addr string) *tls.Config {
	if cfg.ServerName != "" || cfg.InsecureSkipVerify {
		return cfg
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return cfg
	}
	cfg = cfg.Clone()
	cfg.ServerName = host
	return cfg
}
