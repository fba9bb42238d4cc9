package broker

import (
	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/filter"
	"github.com/gorocketmq/rocketmq/internal/filter/sql92"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// pullFilter is which messages a pull wants: by tags, or by an SQL92
// expression over the properties.
type pullFilter struct {
	any  bool // all of them
	tags filter.Tags
	sql  *sql92.Expr // not nil: instead of tags
}

var _ store.Filter = (*pullFilter)(nil)

// MatchCode implements store.Filter.
func (f *pullFilter) MatchCode(code int64) bool {
	return f.any || f.sql != nil || f.tags.MatchCode(code)
}

// MatchRecord implements store.Filter.
func (f *pullFilter) MatchRecord(r *wire.Record) bool { return f.matchProperties(r.Properties) }

// MatchProperties implements pop.Filter.
func (f *pullFilter) MatchProperties(p wire.Properties) bool { return f.matchProperties(p) }

func (f *pullFilter) matchProperties(p wire.Properties) bool {
	return f.any || f.sql == nil || f.sql.Match(p)
}

// noSQL is what Apache answers while enablePropertyFilter is off.
func noSQL(exprType string) string {
	return "The broker does not support consumer to filter message by " + exprType
}

// isTag tells whether an expression type means tags, as no type does.
func isTag(exprType string) bool { return exprType == "" || exprType == filter.TypeTag }

// compile compiles the expression of a subscription that is not of tags. What
// is wrong with it is a remark.
func (b *Broker) compile(expr, exprType []byte) (e *sql92.Expr, remark string) {
	if string(exprType) != filter.TypeSQL {
		return nil, "unknown expression type " + string(exprType) + ", there are " + filter.TypeTag + " and " + filter.TypeSQL
	}
	e, err := b.expressions.Compile(expr)
	if err != nil {
		return nil, err.Error()
	}
	return e, ""
}

// subscription takes the filter from the request.
func (op *pullOp) subscription() bool {
	req := &op.req
	if t := req.ExpressionType; len(t) > 0 && string(t) != filter.TypeTag {
		e, remark := op.b.compile(req.Subscription, t)
		if e == nil {
			return op.fail(wire.RespSubscriptionParseFailed, remark)
		}
		return op.filterBySQL(e)
	}
	tags, err := filter.Parse(string(req.Subscription))
	if err != nil {
		return op.fail(wire.RespSubscriptionParseFailed, err.Error())
	}
	op.want.tags = tags
	return true
}

// subscribed takes the filter from the group's heartbeats.
func (op *pullOp) subscribed() bool {
	req := &op.req
	s, broadcasting, online := op.b.clients.Find(req.Group, req.Topic)
	switch {
	case !online:
		return op.fail(wire.RespSubscriptionNotExist, "no member of group "+op.group.Name+" has sent a heartbeat to this broker")
	case broadcasting && !op.group.ConsumeBroadcastEnable:
		return op.forbid(4, "group "+op.group.Name+" may not consume by broadcasting")
	case s == nil:
		return op.fail(wire.RespSubscriptionNotExist, "group "+op.group.Name+" does not subscribe to topic "+op.topic.Name)
	case s.Version < req.SubVersion:
		return op.fail(wire.RespSubscriptionNotLatest, "the consumer's subscription not latest")
	}
	op.want.any = op.want.any || s.ClassFilter
	switch {
	case isTag(s.ExprType):
		op.want.tags = s.Filter
		return true
	case s.SQL == nil:
		return op.fail(wire.RespFilterDataNotExist, "the filter of group "+op.group.Name+" for topic "+op.topic.Name+
			" does not compile: "+s.SQLFault.Error())
	case s.SQLVersion < s.Version:
		return op.fail(wire.RespFilterDataNotLatest, "the newest filter of group "+op.group.Name+" for topic "+op.topic.Name+
			" does not compile: "+s.SQLFault.Error())
	}
	return op.filterBySQL(s.SQL)
}

// filterBySQL has the properties decide, but for retried messages, which have
// been through the filter of their topic (filterSupportRetry=false of Apache).
func (op *pullOp) filterBySQL(e *sql92.Expr) bool {
	if !op.b.cfg.PropertyFilter {
		return op.fail(wire.RespSystemError, noSQL(filter.TypeSQL))
	}
	op.want.sql = e
	op.want.any = op.want.any || wire.IsRetryTopic(op.topic.Name)
	return true
}
