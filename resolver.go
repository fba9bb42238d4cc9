package rocketmq

import "context"

// Resolver finds the addresses of name servers. It is asked before the first
// use, every two minutes after that, and when no name server answers. An error
// or an empty list keeps the servers that are known.
type Resolver interface {
	Resolve(ctx context.Context) ([]string, error)
}

// ResolverFunc is a function as a [Resolver].
type ResolverFunc func(ctx context.Context) ([]string, error)

// Resolve implements [Resolver].
func (f ResolverFunc) Resolve(ctx context.Context) ([]string, error) { return f(ctx) }
