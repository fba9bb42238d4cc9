package remoting

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	mathbig "math/big"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

// certificate makes a self-signed certificate for 127.0.0.1.
func certificate(t *testing.T) (server, client *tls.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	tpl := &x509.Certificate{
		SerialNumber: mathbig.NewInt(1),
		NotBefore:    time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA:        true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, tpl, tpl, &key.PublicKey, key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(cert)
	server = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	return server, &tls.Config{RootCAs: roots}
}

func TestTLSAndPlainShareAPort(t *testing.T) {
	server, client := certificate(t)
	_, addr := serveTCP(t, ServerConfig{Config: Config{Handler: echo}, TLS: server})
	for _, cfg := range []*tls.Config{client, nil} {
		p := newPool(t, PoolConfig{TLS: cfg})
		c := get(t, p, addr)
		assert.Equal(t, cfg == nil && partialWrites, c.resumable)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 20 {
					body := make([]byte, 30_000)
					f, err := c.Call(context.Background(), &wire.Command{Code: codeEcho, Body: body})
					if assert.NoError(t, err) {
						assert.Len(t, f.Body, len(body))
					}
				}
			})
		}
		wg.Wait()
	}
}

func TestTLSOnlyRefusesPlain(t *testing.T) {
	server, client := certificate(t)
	_, addr := serveTCP(t, ServerConfig{Config: Config{Handler: echo}, TLS: server, TLSOnly: true})
	_, err := newPool(t, PoolConfig{}).Call(t.Context(), addr, &wire.Command{Code: codeEcho})
	assert.ErrorIs(t, err, ErrConnection)
	_, err = newPool(t, PoolConfig{TLS: client}).Call(t.Context(), addr, &wire.Command{Code: codeEcho})
	assert.NoError(t, err)
}

// The certificate is verified, by the address's host unless told otherwise.
func TestTLSVerifiesTheServer(t *testing.T) {
	server, client := certificate(t)
	_, addr := serveTCP(t, ServerConfig{Config: Config{Handler: echo}, TLS: server})
	var unknown x509.UnknownAuthorityError
	_, err := newPool(t, PoolConfig{TLS: &tls.Config{}}).Get(t.Context(), addr)
	assert.ErrorAs(t, err, &unknown)
	other := client.Clone()
	other.ServerName = "broker.example"
	var host x509.HostnameError
	_, err = newPool(t, PoolConfig{TLS: other}).Get(t.Context(), addr)
	assert.ErrorAs(t, err, &host)
	assert.ErrorContains(t, err, addr)
}

func TestTLSClientOnPlainServer(t *testing.T) {
	_, client := certificate(t)
	_, addr := serveTCP(t, ServerConfig{Config: Config{Handler: echo}})
	_, err := newPool(t, PoolConfig{TLS: client}).Get(t.Context(), addr)
	assert.ErrorIs(t, err, ErrConnection)
	assert.ErrorContains(t, err, "tls handshake")
}

// A server closes at once although a socket has not said yet what it is.
func TestCloseDoesNotWaitForUndecidedSockets(t *testing.T) {
	server, _ := certificate(t)
	s, addr := serveTCP(t, ServerConfig{Config: Config{Handler: echo}, TLS: server})
	nc, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer nc.Close()
	_, err = newPool(t, PoolConfig{}).Call(t.Context(), addr, &wire.Command{Code: codeEcho})
	require.NoError(t, err, "accepted after the silent one")
	assert.NoError(t, s.Close(t.Context()))
}
