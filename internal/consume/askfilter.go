package consume

import (
	"context"
	"errors"
	"fmt"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/client"
	"github.com/gorocketmq/rocketmq/internal/filter"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// askAtMost bounds how many brokers are asked about a filter until one
// answers.
const askAtMost = 3

// askFilters has a broker judge each SQL92 expression, as Java's client does
// at its start: one that does not take it would refuse every pull later on.
func (c *Consumer) askFilters(ctx context.Context) error {
	for _, t := range c.topics {
		if string(t.exprType) != filter.TypeSQL {
			continue
		}
		if err := t.askFilter(ctx); err != nil {
			return fmt.Errorf("subscription of topic %q: %w", t.name, err)
		}
	}
	return nil
}

func (t *topic) askFilter(ctx context.Context) error {
	rt, route := t.c.cfg.Runtime, t.route.Load()
	body := wire.CheckClientConfigBody{ClientID: rt.ClientID(), Group: string(t.c.groupWire), Subscription: t.subscription()}
	req := wire.Command{Code: wire.ReqCheckClientConfig, Body: body.AppendJSON(nil)}
	var last error
	names := route.BrokerNames()
	for _, name := range names[:min(len(names), askAtMost)] {
		addr := t.master(name)
		if addr == "" {
			continue
		}
		_, last = rt.Call(ctx, addr, &req)
		var re *client.ResponseError
		switch {
		case last == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.As(last, &re) && (re.Code == wire.RespSystemError || re.Code == wire.RespSubscriptionParseFailed):
			err := &rocketmq.BrokerError{Op: re.Op, Addr: re.Addr, Code: rocketmq.Code(re.Code), Remark: re.Remark}
			if re.Code == wire.RespSystemError {
				return fmt.Errorf("%w (brokers filter by SQL92 with enablePropertyFilter=true)", err)
			}
			return err
		}
	}
	// Brokers that are away are waited for, as with any subscription.
	t.c.log.Warn("no broker said whether it takes the SQL92 filter", "topic", t.name, "err", last)
	return nil
}
