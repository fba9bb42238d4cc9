package testbroker_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/producer"
	"github.com/gorocketmq/rocketmq/selector"
	"github.com/gorocketmq/rocketmq/testbroker"
)

// order is what the messages of these tests say of themselves. Empty strings
// are properties that are not there.
type order struct {
	tag, region, amount string
	last                bool // the last message of its queue
}

func (o *order) message(topic string) *rocketmq.Message {
	m := &rocketmq.Message{Topic: topic, Tag: o.tag, Properties: map[string]string{}}
	if o.region != "" {
		m.Properties["region"] = o.region
	}
	if o.amount != "" {
		m.Properties["amount"] = o.amount
	}
	if o.last {
		m.Properties["last"] = "yes"
	}
	return m
}

// whole is the amount as what an integer in SQL makes of it.
func (o *order) whole() (int64, bool) {
	n, err := strconv.ParseInt(o.amount, 10, 32)
	return n, err == nil
}

// A choice is an expression and the same in Go.
type choice struct {
	sql  string
	want func(o *order) bool
}

var choices = []choice{
	{"amount > 5", func(o *order) bool { n, ok := o.whole(); return ok && n > 5 }},
	{"NOT (amount > 5)", func(o *order) bool { n, ok := o.whole(); return ok && n <= 5 }},
	{"amount BETWEEN 3 AND 7", func(o *order) bool { n, ok := o.whole(); return ok && n >= 3 && n <= 7 }},
	{"amount < 5.5", func(o *order) bool {
		f, err := strconv.ParseFloat(o.amount, 64)
		return err == nil && f < 5.5
	}},
	{"amount IS NULL", func(o *order) bool { return o.amount == "" }},
	{"region = 'eu'", func(o *order) bool { return o.region == "eu" }},
	{"region <> 'eu'", func(o *order) bool { return o.region != "" && o.region != "eu" }},
	{"region IN ('us', 'cn')", func(o *order) bool { return o.region == "us" || o.region == "cn" }},
	{"region NOT IN ('us', 'cn')", func(o *order) bool { return o.region != "" && o.region != "us" && o.region != "cn" }},
	{"region CONTAINS 'u'", func(o *order) bool { return strings.Contains(o.region, "u") }},
	{"TAGS = 'paid'", func(o *order) bool { return o.tag == "paid" }},
}

// drawChoice combines choices. AND and OR of two agree with Go's as long as
// neither fails: a comparison with a number is guarded by what cannot fail.
func drawChoice(t *rapid.T) choice {
	a := rapid.SampledFrom(choices).Draw(t, "a")
	b := rapid.SampledFrom(choices[4:]).Draw(t, "b") // these do not fail
	switch rapid.IntRange(0, 2).Draw(t, "op") {
	case 0:
		return a
	case 1:
		return choice{"(" + b.sql + ") AND (" + a.sql + ")", func(o *order) bool { return a.want(o) && b.want(o) }}
	default:
		return choice{"(" + b.sql + ") OR (" + a.sql + ")", func(o *order) bool { return a.want(o) || b.want(o) }}
	}
}

// TestSQLSubscriptions sends orders of all kinds and has a group consume them
// by each of many expressions: it gets exactly those that the expression is
// true for.
func TestSQLSubscriptions(t *testing.T) {
	const topic, queues, count = "orders", 4, 400
	cluster := testbroker.New(t, testbroker.Topic(topic, queues), testbroker.Brokers(2))
	p := newProducer(t, cluster)
	rnd := rand.New(rand.NewPCG(1, 2))
	any := func(s ...string) string { return s[rnd.IntN(len(s))] }
	sent := map[string]*order{}
	send := func(id string, o *order, q rocketmq.Queue) {
		m := o.message(topic)
		m.Body = []byte(id)
		_, err := p.Send(t.Context(), m, producer.To(q))
		require.NoError(t, err)
		sent[id] = o
	}
	all := make([]rocketmq.Queue, 0, 2*queues)
	for _, b := range cluster.Brokers() {
		for i := range queues {
			all = append(all, rocketmq.Queue{Topic: topic, Broker: b, ID: i})
		}
	}
	for i := range count {
		o := &order{
			tag: any("", "paid", "open"), region: any("", "eu", "us", "cn", "eu-west"),
			amount: any("", "1", "3", "5", "7", "9", "5.25", "many", "10000000000"),
		}
		send(strconv.Itoa(i), o, all[i%len(all)])
	}
	for i, q := range all {
		send(fmt.Sprint("last-", i), &order{last: true}, q)
	}
	group := 0
	rapid.Check(t, func(rt *rapid.T) {
		c := drawChoice(rt)
		group++
		got := consumeBySQL(t, cluster, fmt.Sprint("group", group), topic, "last = 'yes' OR "+c.sql, len(all))
		var want []string
		for id, o := range sent {
			if o.last || c.want(o) {
				want = append(want, id)
			}
		}
		slices.Sort(want)
		if !slices.Equal(want, got) {
			rt.Fatalf("%s: got %v, want %v", c.sql, got, want)
		}
		if lag := cluster.Lag(fmt.Sprint("group", group), topic); lag != 0 {
			rt.Fatalf("%s: lag %d after the last message", c.sql, lag)
		}
	})
}

// consumeBySQL is what a new group gets until the last messages of all queues
// have come.
func consumeBySQL(t *testing.T, cluster *testbroker.Cluster, group, topic, sql string, lasts int) []string {
	var mu sync.Mutex
	var got []string
	left, done := lasts, make(chan struct{})
	cl := cluster.Client(t)
	c, err := consumer.NewPush(cl, group, consumer.StartFrom(rocketmq.Earliest()),
		consumer.Subscribe(topic, selector.SQL(sql), consumer.Each(func(_ context.Context, m *rocketmq.MessageView) error {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, string(m.Body))
			if _, last := m.Properties.Lookup("last"); last {
				if left--; left == 0 {
					close(done)
				}
			}
			return nil
		})))
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- c.Run(context.Background()) }()
	select {
	case <-done:
	case err := <-ended:
		require.NoError(t, err)
		require.FailNow(t, "the consumer ended")
	case <-time.After(20 * time.Second):
		require.FailNow(t, "messages are missing", "%s: %v", sql, got)
	}
	require.NoError(t, c.Close(context.Background()))
	require.NoError(t, <-ended)
	require.NoError(t, cl.Close(context.Background()))
	slices.Sort(got)
	return got
}

// A consumer that waits gets what matches when it comes, and nothing else.
func TestSQLWhileWaiting(t *testing.T) {
	cluster := testbroker.New(t, testbroker.Topic("T", 1))
	p := newProducer(t, cluster)
	got := make(chan string, 100)
	c, err := consumer.NewPush(cluster.Client(t), "group", consumer.Subscribe("T", selector.SQL("n > 10"),
		consumer.Each(func(_ context.Context, m *rocketmq.MessageView) error {
			got <- string(m.Body)
			return nil
		})))
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- c.Run(context.Background()) }()
	select {
	case <-c.Ready():
	case err := <-ended:
		require.FailNow(t, "the consumer ended", "%v", err)
	}
	for round := range 5 {
		for n := range 20 {
			_, err := p.Send(t.Context(), &rocketmq.Message{Topic: "T", Body: fmt.Append(nil, round, "/", n),
				Properties: map[string]string{"n": strconv.Itoa(n)}})
			require.NoError(t, err)
		}
		var seen []string
		for n := 11; n < 20; n++ {
			select {
			case body := <-got:
				seen = append(seen, body)
			case <-time.After(10 * time.Second):
				require.FailNow(t, "messages are missing", "round %d: %v", round, seen)
			}
		}
		slices.Sort(seen)
		for i, body := range seen {
			require.Equal(t, fmt.Sprint(round, "/", 11+i), body)
		}
	}
	require.NoError(t, c.Close(context.Background()))
	require.NoError(t, <-ended)
	require.Empty(t, got)
}
