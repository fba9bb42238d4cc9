package rocketmq

import (
	"context"
	"time"
)

// Hook watches a client and its roles. Implement any of the Hook interfaces of
// this package and pass the value to [WithHooks]; more may be added over time.
// Methods are called concurrently, on the library's own goroutines or on the
// caller's, and must return fast. Hooks watch; to change what happens, use the
// interceptors of the roles.
type Hook any

// HookConnect is called when a connection was made or could not be.
type HookConnect interface {
	OnConnect(addr string, took time.Duration, err error)
}

// HookDisconnect is called when a connection has ended. err is why.
type HookDisconnect interface {
	OnDisconnect(addr string, err error)
}

// HookRoute is called when the route of a topic changed. before has no
// brokers the first time, after has none when the topic is gone.
type HookRoute interface {
	OnRoute(topic string, before, after Route)
}

// HookSend is called with the outcome of every send.
type HookSend interface {
	OnSend(ctx context.Context, s SendInfo)
}

// SendInfo is the outcome of one send.
type SendInfo struct {
	Topic     string
	MessageID string
	Queue     Queue // of the last attempt
	Addr      string
	Bytes     int // of the body
	Attempts  int
	Took      time.Duration
	Err       error
}
