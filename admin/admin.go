package admin

import (
	"context"
	"errors"
	"fmt"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/bridge"
	"github.com/gorocketmq/rocketmq/internal/client"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Client administers the cluster of a rocketmq.Client. It has no state of its
// own and nothing to close. All methods are safe for concurrent use; each
// request of theirs is bounded by the client's request timeout, and by ctx.
type Client struct{ h *bridge.Handle }

// New makes an administrator of a client's cluster. With a nil client all
// methods fail with [rocketmq.ErrInvalidOption].
func New(c *rocketmq.Client) *Client {
	if c == nil {
		return &Client{}
	}
	return &Client{bridge.Of(c)}
}

func (a *Client) runtime() (*client.Runtime, error) {
	if a == nil || a.h == nil {
		return nil, fmt.Errorf("%w: the client is nil", rocketmq.ErrInvalidOption)
	}
	return a.h.Runtime, nil
}

// route asks a name server where a topic is.
func (a *Client) route(ctx context.Context, rt *client.Runtime, topic string) (*client.Route, error) {
	r, err := rt.FetchRoute(ctx, topic)
	return r, bridge.PublicError(err)
}

// master is a broker's address, for the name that a queue's place says.
func master(r *client.Route, broker string) (string, error) {
	if addr := r.MasterOf(broker); addr != "" {
		return addr, nil
	}
	return "", fmt.Errorf("broker %s has no master now: %w", broker, rocketmq.ErrUnavailable)
}

// call sends one request and decodes the answer's header, if there is one to decode.
func call(ctx context.Context, rt *client.Runtime, addr string, code int32, ext wire.ExtEncoder, into interface{ DecodeExt(*wire.Frame) error }) error {
	f, err := rt.Call(ctx, addr, &wire.Command{Code: code, Ext: ext})
	if err == nil && into != nil {
		err = into.DecodeExt(f)
	}
	return bridge.PublicError(err)
}

// queueEnd is where a queue begins (GET_MIN_OFFSET) or ends (GET_MAX_OFFSET).
func queueEnd(ctx context.Context, rt *client.Runtime, addr, topic string, queue int32, code int32) (int64, error) {
	var h wire.OffsetResponse
	err := call(ctx, rt, addr, code, &wire.QueueRequest{Topic: topic, QueueID: queue}, &h)
	return h.Offset, err
}

// refused tells whether a broker answered with a code.
func refused(err error, code rocketmq.Code) bool {
	var be *rocketmq.BrokerError
	return errors.As(err, &be) && be.Code == code
}
