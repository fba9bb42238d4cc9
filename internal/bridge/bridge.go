// Package bridge lets the packages of this module reach what is inside a
// rocketmq.Client without an exported method on it, which every reader of the
// public documentation would have to look past.
package bridge

import (
	"context"
	"log/slog"

	"github.com/gorocketmq/rocketmq/internal/client"
)

// Handle is the inside of a rocketmq.Client.
type Handle struct {
	Runtime *client.Runtime
	Logger  *slog.Logger
	Hooks   []any // rocketmq.Hook
	// Adopt has the client close a role that is still open when the client is
	// closed, in reverse order of adoption. release takes that back, once the
	// role has been closed. It is an error on a closed client.
	Adopt func(close func(ctx context.Context) error) (release func(), err error)
}

// Set by package rocketmq when it is initialized, never changed after that.
var (
	// Of returns the inside of a *rocketmq.Client, nil for anything else.
	Of func(c any) *Handle
	// PublicError turns the errors of internal/client and internal/remoting
	// into those that package rocketmq exports. Others stay as they are.
	PublicError func(err error) error
)
