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

// Written once, while package rocketmq is initialized.
var (
	of     func(c any) *Handle
	public func(err error) error
)

// Register is called by package rocketmq as a part of its initialization.
func Register(inside func(c any) *Handle, publicError func(err error) error) struct{} {
	of, public = inside, publicError
	return struct{}{}
}

// Of returns the inside of a *rocketmq.Client, nil for anything else and for
// a nil client.
func Of(c any) *Handle { return of(c) }

// PublicError turns the errors of internal/client and internal/remoting into
// those that package rocketmq exports. Others stay as they are.
func PublicError(err error) error { return public(err) }
