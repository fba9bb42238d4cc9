package clients_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/broker/clients"
	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

type conn struct{ name string }

func (c *conn) Remote() string { return c.name }

func data(group string, version int64, topics ...string) wire.ConsumerData {
	d := wire.ConsumerData{Group: group, ConsumeType: "CONSUME_PASSIVELY", Model: "CLUSTERING", From: "CONSUME_FROM_LAST_OFFSET"}
	for _, t := range topics {
		d.Subscriptions = append(d.Subscriptions, wire.Subscription{Topic: t, Expr: "*", ExprType: "TAG", Version: version})
	}
	return d
}

func newManager() (*clients.Manager, *clock.Manual) {
	c := clock.NewManual(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	return clients.New(c), c
}

func TestConsumersComeAndGo(t *testing.T) {
	m, _ := newManager()
	a, b := &conn{"a"}, &conn{"b"}

	ch, changed := m.Consumer(data("CG", 1, "T"), clients.Client{ID: "2", Conn: a}, false)
	require.True(t, changed)
	require.Equal(t, []clients.Conn{a}, ch.Notify)
	_, changed = m.Consumer(data("CG", 1, "T"), clients.Client{ID: "2", Conn: a}, false)
	require.False(t, changed, "the same heartbeat again")

	ch, changed = m.Consumer(data("CG", 1, "T"), clients.Client{ID: "1", Conn: b}, false)
	require.True(t, changed)
	require.ElementsMatch(t, []clients.Conn{a, b}, ch.Notify)
	require.Equal(t, []string{"1", "2"}, m.ConsumerIDs("CG"))

	changes := m.RemoveConn(a)
	require.Len(t, changes, 1)
	require.Equal(t, []clients.Conn{b}, changes[0].Notify)
	require.Empty(t, m.RemoveConn(a))

	ch, removed := m.RemoveConsumer("CG", b)
	require.True(t, removed)
	require.Empty(t, ch.Notify)
	require.Nil(t, m.ConsumerIDs("CG"))
	_, ok := m.Group("CG")
	require.False(t, ok)
}

func TestOneIDOnTwoConnectionsCountsOnce(t *testing.T) {
	m, c := newManager()
	a, b := &conn{"a"}, &conn{"b"}
	m.Consumer(data("CG", 1, "T"), clients.Client{ID: "x", Conn: a}, false)
	c.Advance(time.Second)
	m.Consumer(data("CG", 1, "T"), clients.Client{ID: "x", Conn: b}, false)
	require.Equal(t, []string{"x"}, m.ConsumerIDs("CG"))
	got, ok := m.Member("CG", "x")
	require.True(t, ok)
	require.Same(t, b, got.Conn)
	_, ok = m.Member("CG", "y")
	require.False(t, ok)
	_, ok = m.Member("none", "x")
	require.False(t, ok)
}

func TestSubscriptionsFollowTheirVersion(t *testing.T) {
	m, _ := newManager()
	a := &conn{"a"}
	m.Consumer(data("CG", 5, "T", "U"), clients.Client{ID: "1", Conn: a}, false)

	older := data("CG", 4, "T", "U")
	older.Subscriptions[0].Expr = "old"
	_, changed := m.Consumer(older, clients.Client{ID: "1", Conn: a}, false)
	require.False(t, changed)
	s, broadcasting, online := m.Find([]byte("CG"), []byte("T"))
	require.True(t, online)
	require.False(t, broadcasting)
	require.Equal(t, "*", s.Expr)

	newer := data("CG", 6, "T")
	newer.Subscriptions[0].Expr = "TagA"
	newer.Subscriptions[0].Codes = []int32{wire.JavaHash("TagA")}
	_, changed = m.Consumer(newer, clients.Client{ID: "1", Conn: a}, true)
	require.False(t, changed, "a heartbeat without subscriptions leaves them alone")
	_, changed = m.Consumer(newer, clients.Client{ID: "1", Conn: a}, false)
	require.True(t, changed, "U is gone")
	s, _, _ = m.Find([]byte("CG"), []byte("T"))
	require.True(t, s.Filter.MatchCode(int64(wire.JavaHash("TagA"))))
	require.False(t, s.Filter.MatchCode(0))
	s, _, online = m.Find([]byte("CG"), []byte("U"))
	require.Nil(t, s)
	require.True(t, online)
	_, _, online = m.Find([]byte("none"), []byte("T"))
	require.False(t, online)
	require.Equal(t, []string{"CG"}, m.Subscribers("T"))
	require.Empty(t, m.Subscribers("U"))
}

func TestSQLSubscriptions(t *testing.T) {
	m, _ := newManager()
	beat := func(expr string, version int64) *clients.Subscription {
		d := data("CG", version, "T")
		d.Subscriptions[0].Expr, d.Subscriptions[0].ExprType = expr, wire.ExprSQL
		m.Consumer(d, clients.Client{ID: "1", Conn: &conn{"a"}}, false)
		s, _, _ := m.Find([]byte("CG"), []byte("T"))
		return s
	}
	s := beat("a =", 1)
	require.Nil(t, s.SQL)
	require.Error(t, s.SQLFault)
	s = beat("a = 1", 2)
	require.Equal(t, "a = 1", s.SQL.String())
	require.EqualValues(t, 2, s.SQLVersion)
	require.NoError(t, s.SQLFault)
	require.Same(t, s, beat("a = 2", 2))
	compiled := s.SQL
	s = beat("b =", 3)
	require.Same(t, compiled, s.SQL, "the one that compiles stays")
	require.EqualValues(t, 2, s.SQLVersion)
	require.EqualValues(t, 3, s.Version)
	require.ErrorContains(t, s.SQLFault, "expected")
	s = beat("b = 1", 4)
	require.Equal(t, "b = 1", s.SQL.String())
	require.EqualValues(t, 4, s.SQLVersion)
}

func TestExpiry(t *testing.T) {
	m, c := newManager()
	a, b := &conn{"a"}, &conn{"b"}
	m.Consumer(data("CG", 1, "T"), clients.Client{ID: "1", Conn: a}, false)
	m.Producer("PG", clients.Client{ID: "2", Conn: b})
	c.Advance(100 * time.Second)
	m.Producer("PG", clients.Client{ID: "2", Conn: b})
	c.Advance(30 * time.Second)
	dead, changes := m.Expire(120 * time.Second)
	require.Equal(t, []clients.Conn{a}, dead)
	require.Len(t, changes, 1)
	require.Equal(t, "CG", changes[0].Group)
	require.Len(t, m.Producers("PG"), 1)
	require.Equal(t, []string{"PG"}, m.ProducerGroups())
	m.RemoveProducer("PG", b)
	require.Empty(t, m.ProducerGroups())
}

func TestFindDoesNotAllocate(t *testing.T) {
	m, _ := newManager()
	m.Consumer(data("CG", 1, "T"), clients.Client{ID: "1", Conn: &conn{"a"}}, false)
	group, topic := []byte("CG"), []byte("T")
	require.Zero(t, testing.AllocsPerRun(100, func() { m.Find(group, topic) }))
}

func TestSenderIsTheConnectionThatCameLast(t *testing.T) {
	m, c := newManager()
	a, b := &conn{"a"}, &conn{"b"}
	id := []byte("x")
	require.Nil(t, m.Sender(id))
	m.Consumer(data("CG", 1, "T"), clients.Client{ID: "x", Conn: a}, false)
	require.Nil(t, m.Sender(id), "a consumer alone sends no requests")
	m.Producer("PG", clients.Client{ID: "x", Conn: a})
	m.Producer("PG2", clients.Client{ID: "x", Conn: a})
	require.Same(t, a, m.Sender(id))
	m.Producer("PG", clients.Client{ID: "x", Conn: b})
	m.Producer("PG", clients.Client{ID: "x", Conn: a}) // a heartbeat of the old connection
	require.Same(t, b, m.Sender(id))
	m.RemoveConn(b)
	require.Same(t, a, m.Sender(id))
	m.RemoveProducer("PG", a)
	require.Same(t, a, m.Sender(id), "still in the other group")
	m.RemoveProducer("PG2", a)
	require.Nil(t, m.Sender(id))
	require.Equal(t, []string{"x"}, m.ConsumerIDs("CG"))

	m.Producer("PG", clients.Client{ID: "x", Conn: a})
	m.Producer("PG", clients.Client{ID: "y", Conn: a})
	require.Nil(t, m.Sender(id), "it has another name now")
	require.Same(t, a, m.Sender([]byte("y")))
	c.Advance(time.Hour)
	m.Expire(time.Minute)
	require.Nil(t, m.Sender([]byte("y")))
	require.Zero(t, testing.AllocsPerRun(100, func() { m.Sender(id) }))
}
