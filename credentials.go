package rocketmq

import (
	"context"
	"crypto/hmac"
	"crypto/sha1" // the protocol's signature; nothing else is to be had
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
)

// Credentials sign requests to servers with access control.
type Credentials struct {
	AccessKey, SecretKey string
	SecurityToken        string // of temporary credentials, else ""
}

// String hides the secret.
func (c Credentials) String() string { return "credentials of " + c.AccessKey }

// LogValue implements [slog.LogValuer] and hides the secret.
func (c Credentials) LogValue() slog.Value { return slog.StringValue(c.String()) }

// CredentialsProvider gives the credentials to sign the next request with, so
// that keys can be rotated. It is asked before each request on the goroutine
// that makes it, concurrently, and must answer from memory.
type CredentialsProvider interface {
	Credentials(ctx context.Context) (Credentials, error)
}

// StaticCredentials are credentials that stay the same.
func StaticCredentials(accessKey, secretKey string) CredentialsProvider {
	return staticCredentials{AccessKey: accessKey, SecretKey: secretKey}
}

type staticCredentials Credentials

func (s staticCredentials) Credentials(context.Context) (Credentials, error) {
	return Credentials(s), nil
}

// signer implements wire.Signer. Frames are signed under a connection's lock,
// where the user's code must not run: refresh asks the provider before, Sign
// takes what it left.
type signer struct {
	provider CredentialsProvider
	now      atomic.Pointer[Credentials]
}

func (s *signer) refresh(ctx context.Context) error {
	c, err := s.provider.Credentials(ctx)
	if err != nil {
		return fmt.Errorf("%w: credentials provider: %w", ErrUnauthorized, err)
	}
	if c.AccessKey == "" || c.SecretKey == "" {
		return fmt.Errorf("%w: credentials provider: %w", ErrUnauthorized, errors.New("access key or secret key is empty"))
	}
	if old := s.now.Load(); old == nil || *old != c {
		s.now.Store(&c)
	}
	return nil
}

// Sign implements wire.Signer: base64 of HMAC-SHA1.
func (s *signer) Sign() (accessKey, securityToken string, signature func(content []byte) string) {
	c := s.now.Load()
	if c == nil {
		c = &Credentials{}
	}
	return c.AccessKey, c.SecurityToken, func(content []byte) string {
		h := hmac.New(sha1.New, []byte(c.SecretKey))
		_, _ = h.Write(content)
		return base64.StdEncoding.EncodeToString(h.Sum(nil))
	}
}
