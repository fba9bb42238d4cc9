package broker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

// withSQL turns SQL92 filters on.
func withSQL(c *Config) { c.PropertyFilter = true }

// sqlPull brings its expression along.
func sqlPull(topic, expr string, offset int64) *wire.PullRequest {
	h := pullHeaderOf("CG", topic, 0, offset)
	h.Subscription, h.ExpressionType = []byte(expr), []byte("SQL92")
	return h
}

// sqlHeartbeat subscribes group CG to topic T.
func (p *peer) sqlHeartbeat(expr string, version int64) {
	p.tb.Helper()
	hb := wire.Heartbeat{ClientID: "id", Consumers: []wire.ConsumerData{{
		Group: "CG", ConsumeType: wire.ConsumePassively, Model: wire.Clustering, From: wire.FromLastOffset,
		Subscriptions: []wire.Subscription{{Topic: "T", Expr: expr, ExprType: "SQL92", Version: version}},
	}}}
	p.must(wire.ReqHeartBeat, nil, hb.AppendJSON(nil))
}

func TestPullBySQL(t *testing.T) {
	b := startBroker(t, withSQL)
	p := dial(t, b)
	p.send(b, "T", 0, "cheap", "price", "5")
	p.send(b, "T", 0, "dear", "price", "500", "TAGS", "TagA")
	p.send(b, "T", 0, "no number", "price", "much")
	p.send(b, "T", 0, "no price")
	for expr, want := range map[string][]string{
		"price > 10":               {"dear"},
		"price <= 10":              {"cheap"},
		"price IS NULL":            {"no price"},
		"TAGS = 'TagA'":            {"dear"},
		"TRUE":                     {"cheap", "dear", "no number", "no price"},
		"NOT (price > 10)":         {"cheap"},
		"price = 'much' ignored":   {"no number"},
		"price CONTAINS '5'":       {"cheap", "dear"},
		"price NOT CONTAINS '500'": {"cheap", "no number"},
	} {
		f := p.must(wire.ReqPullMessage, sqlPull("T", expr, 0), nil)
		require.Equal(t, want, bodies(t, f), expr)
		require.EqualValues(t, 4, pullResponse(t, f).NextOffset, expr)
	}
	f := p.call(wire.ReqPullMessage, sqlPull("T", "price > 1000", 0), nil)
	require.EqualValues(t, wire.RespPullRetryImmediately, f.Code)
	require.EqualValues(t, 4, pullResponse(t, f).NextOffset)

	f = p.call(wire.ReqPullMessage, sqlPull("T", "price >", 0), nil)
	require.EqualValues(t, wire.RespSubscriptionParseFailed, f.Code)
	require.Contains(t, string(f.Remark), "column 8: expected")
	h := sqlPull("T", "price > 10", 0)
	h.ExpressionType = []byte("XPATH")
	f = p.call(wire.ReqPullMessage, h, nil)
	require.EqualValues(t, wire.RespSubscriptionParseFailed, f.Code)
	require.Contains(t, string(f.Remark), "XPATH")
	h.SysFlag |= wire.PullClassFilter
	h.ExpressionType = []byte("SQL92")
	require.Len(t, bodies(t, p.must(wire.ReqPullMessage, h, nil)), 4)
}

func TestSQLIsOffByDefault(t *testing.T) {
	b := startBroker(t)
	p := dial(t, b)
	p.send(b, "T", 0, "x")
	const remark = "The broker does not support consumer to filter message by SQL92"
	f := p.call(wire.ReqPullMessage, sqlPull("T", "a = 1", 0), nil)
	require.EqualValues(t, wire.RespSystemError, f.Code)
	require.Equal(t, remark, string(f.Remark))

	p.sqlHeartbeat("a = 1", 1)
	h := pullHeaderOf("CG", "T", 0, 0)
	h.SysFlag = 0
	f = p.call(wire.ReqPullMessage, h, nil)
	require.EqualValues(t, wire.RespSystemError, f.Code)
	require.Equal(t, remark, string(f.Remark))

	body := wire.CheckClientConfigBody{Group: "CG", Subscription: wire.Subscription{Topic: "T", Expr: "a = 1", ExprType: "SQL92"}}
	f = p.call(wire.ReqCheckClientConfig, nil, body.AppendJSON(nil))
	require.EqualValues(t, wire.RespSystemError, f.Code)
	require.Equal(t, remark, string(f.Remark))
}

func TestCheckClientConfigOfSQL(t *testing.T) {
	p := dial(t, startBroker(t, withSQL))
	for _, c := range []struct {
		exprType, expr string
		code           int32
	}{
		{"SQL92", "a = 1 AND b IN ('x')", wire.RespSuccess},
		{"SQL92", "a =", wire.RespSubscriptionParseFailed},
		{"sql92", "a = 1", wire.RespSubscriptionParseFailed},
		{"TAG", "*", wire.RespSuccess},
		{"", "a || b", wire.RespSuccess},
		{"TAG", "||", wire.RespSubscriptionParseFailed},
	} {
		body := wire.CheckClientConfigBody{Group: "CG", Subscription: wire.Subscription{Topic: "T", Expr: c.expr, ExprType: c.exprType}}
		f := p.call(wire.ReqCheckClientConfig, nil, body.AppendJSON(nil))
		require.Equal(t, c.code, f.Code, "%s %s: %s", c.exprType, c.expr, f.Remark)
	}
}

func TestPullBySQLOfTheHeartbeat(t *testing.T) {
	b := startBroker(t, withSQL)
	p := dial(t, b)
	p.send(b, "T", 0, "one", "a", "1")
	p.send(b, "T", 0, "two", "a", "2")
	pull := func(version int64) *wire.Frame {
		h := pullHeaderOf("CG", "T", 0, 0)
		h.SysFlag, h.SubVersion = 0, version
		return p.call(wire.ReqPullMessage, h, nil)
	}
	p.sqlHeartbeat("a =", 1)
	f := pull(1)
	require.EqualValues(t, wire.RespFilterDataNotExist, f.Code)
	require.Contains(t, string(f.Remark), "column 4: expected")

	p.sqlHeartbeat("a = 1", 2)
	require.Equal(t, []string{"one"}, bodies(t, pull(2)))
	p.sqlHeartbeat("a = 2", 2)
	require.Equal(t, []string{"one"}, bodies(t, pull(2)), "the same version is the same expression")
	p.sqlHeartbeat("a = 2", 3)
	require.Equal(t, []string{"two"}, bodies(t, pull(3)))
	require.EqualValues(t, wire.RespSubscriptionNotLatest, pull(4).Code)

	p.sqlHeartbeat("a ==", 4)
	f = pull(4)
	require.EqualValues(t, wire.RespFilterDataNotLatest, f.Code)
	require.Contains(t, string(f.Remark), "column 4: expected")
	p.sqlHeartbeat("a > 0", 5)
	require.Equal(t, []string{"one", "two"}, bodies(t, pull(5)))
}

func TestRetriedMessagesPassSQL(t *testing.T) {
	b := startBroker(t, withSQL)
	p := dial(t, b)
	topic := wire.RetryTopic("CG")
	require.NoError(t, b.CreateTopic(t.Context(), topic, 1))
	p.send(b, topic, 0, "once more", "a", "2")
	require.Equal(t, []string{"once more"}, bodies(t, p.must(wire.ReqPullMessage, sqlPull(topic, "a = 1", 0), nil)))
}

func TestC64_OnlyMatchingPropertiesAnswer(t *testing.T) {
	b, p, c := pollFixture(t, withSQL)
	got := p.async(wire.ReqPullMessage, holding(sqlPull("T", "a > 10", 0)))
	held(t, b, 1)
	b.polls.mu.Lock()
	op := b.polls.heap.First()
	b.polls.mu.Unlock()
	for _, v := range []string{"1", "10", "many"} {
		p.send(b, "T", 0, "not asked for", "a", v)
	}
	p.send(b, "T", 0, "not asked for")
	// Arrivals are announced before WaitDispatched returns: none has taken it.
	b.polls.mu.Lock()
	n, first, offset := b.polls.heap.Len(), b.polls.heap.First(), op.req.Offset
	b.polls.mu.Unlock()
	require.Equal(t, 1, n)
	require.Same(t, op, first)
	require.Zero(t, offset, "nobody has read again for it")

	advanceUntil(t, c, time.Second, func() bool { return heldFrom(b) == 4 })
	select {
	case f := <-got:
		t.Fatalf("answered with %d %s", f.Code, f.Remark)
	default:
	}
	p.send(b, "T", 0, "wanted", "a", "11")
	f := <-got
	require.Equal(t, []string{"wanted"}, bodies(t, f))
	require.EqualValues(t, 5, pullResponse(t, f).NextOffset)
}

func TestC64_FilteredBacklogOfAHeldPull(t *testing.T) {
	// More messages that do not match than one read looks at, then one that does.
	b, p, _ := pollFixture(t, withSQL, func(c *Config) { c.Store.FilterBytes = 200 }) // ten units a read
	got := p.async(wire.ReqPullMessage, holding(sqlPull("T", "a = 1", 0)))
	held(t, b, 1)
	for range 100 {
		p.send(b, "T", 0, "no", "a", "0")
	}
	p.send(b, "T", 0, "yes", "a", "1")
	f := <-got
	require.Equal(t, []string{"yes"}, bodies(t, f))
	require.EqualValues(t, 101, pullResponse(t, f).NextOffset)
}
