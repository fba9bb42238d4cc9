//go:build interop

package interop

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/producer"
	"github.com/gorocketmq/rocketmq/selector"
)

// operatorVersion is the version of mqadmin that looks into our consumers.
const operatorVersion = "5.3.3"

// operator has mqadmin look at members of ours through a broker, and have them
// handle single messages.
func operator(t *testing.T, c *cluster) {
	for name, f := range map[string]func(*testing.T, *cluster){"push": operatorPush, "lite pull": operatorLite, "simple": operatorSimple} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, c)
		})
	}
}

// operated is how many messages there are to look at.
const operated = 3 * queues

// operatorTopic makes a topic with messages.
func operatorTopic(t *testing.T, c *cluster, topic string) *sender {
	t.Helper()
	s := newSender(t, c, topic)
	c.makeTopic(t, topic)
	s.with(func(ctx context.Context, p *producer.Producer) {
		for i := range operated {
			m := s.message("look", i)
			r, err := p.Send(ctx, m)
			s.took("look", m, r, err)
		}
	})
	if t.Failed() {
		t.FailNow()
	}
	return s
}

// operatorPush looks at a push consumer.
func operatorPush(t *testing.T, c *cluster) {
	const group = "operator_push"
	s := operatorTopic(t, c, "Operator_push")
	again := make(chan string, operated)
	sick := make(chan struct{})
	take := func(_ context.Context, m *rocketmq.MessageView) error {
		again <- m.Keys[0]
		select {
		case <-sick:
			return errors.New("the database is away")
		default:
			return nil
		}
	}
	p, err := consumer.NewPush(s.client, group, consumer.StartFrom(rocketmq.Earliest()), consumer.Subscribe(s.topic, selector.Tags("t0", "t1", "t2"), consumer.Each(take)))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- p.Run(context.WithoutCancel(t.Context())) }()
	defer func() {
		closed(t, "consumer", p.Close)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	next := func() string {
		t.Helper()
		select {
		case key := <-again:
			return key
		case <-time.After(patience):
			t.Fatalf("no call in %v", patience)
			return ""
		}
	}
	for range operated {
		next()
	}
	g := &operatorGroup{t, c, s, group}
	g.connection("CONSUME_PASSIVELY", "t0 || t1 || t2", "CONSUME_FROM_FIRST_OFFSET")
	g.status("CONSUME_PASSIVELY", s.topic, "goroutine ", "operatorPush")
	g.progress(operated)

	// One message, by either of its ids, is handled again, and the tool is told how
	// that ended.
	m := s.sent[3]
	handled := func(result, remark, command string, args ...string) {
		t.Helper()
		out := mqadmin(t, operatorVersion, append([]string{command, "-n", c.namesrv, "-t", s.topic, "-g", group, "-d", s.client.ID()}, args...)...)
		contains(t, command, out, "ConsumeMessageDirectlyResult [order=false, autoCommit=true, consumeResult="+result+", remark="+remark)
		if key := next(); key != m.key() {
			t.Errorf("%s had %s handled, want %s", command, key, m.key())
		}
	}
	handled("CR_SUCCESS", "null", "queryMsgByUniqueKey", "-i", m["id"])
	handled("CR_SUCCESS", "null", "queryMsgById", "-i", m["offsetId"])
	close(sick)
	handled("CR_LATER", "the database is away", "queryMsgById", "-i", m["offsetId"])
	select {
	case key := <-again:
		t.Errorf("%s was handled once more", key)
	default: // a failure is only told
	}
	if !t.Failed() {
		pairing("mqadmin "+operatorVersion+" about our push consumer", c.name, "commands 7 as expected 7, handled again 3 of 3")
	}
}

// operatorLite looks at a lite pull consumer.
func operatorLite(t *testing.T, c *cluster) {
	const group = "operator_lite"
	s := operatorTopic(t, c, "Operator_lite")
	l, err := consumer.NewLitePull(s.client, group, consumer.SubscribeTo(s.topic, selector.All), consumer.StartFrom(rocketmq.Earliest()))
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, "lite pull", l.Close)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for n := 0; n < operated; {
		ms, err := l.Poll(ctx)
		if err != nil {
			t.Fatal(err)
		}
		n += len(ms)
		var qs []rocketmq.Queue
		for _, m := range ms {
			qs = append(qs, m.Queue)
		}
		if err := l.Commit(ctx, qs...); err != nil {
			t.Fatal(err)
		}
	}
	g := &operatorGroup{t, c, s, group}
	g.connection("CONSUME_ACTIVELY", "*", "CONSUME_FROM_FIRST_OFFSET")
	g.status("CONSUME_ACTIVELY", s.topic, "goroutine ", "operatorLite")
	g.progress(operated)
	out := mqadmin(t, operatorVersion, "queryMsgById", "-n", c.namesrv, "-t", s.topic, "-g", group, "-d", s.client.ID(), "-i", s.sent[0]["offsetId"])
	contains(t, "queryMsgById", out, "this "+s.client.ID()+" client is not push consumer")
	if !t.Failed() {
		pairing("mqadmin "+operatorVersion+" about our lite pull", c.name, "commands 5 as expected 5")
	}
}

// operatorSimple looks at a consumer that pops.
func operatorSimple(t *testing.T, c *cluster) {
	const group = "operator_simple"
	s := operatorTopic(t, c, "Operator_simple")
	p, err := consumer.NewSimple(s.client, group, consumer.SubscribeTo(s.topic, selector.All), consumer.StartFrom(rocketmq.Earliest()))
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, "simple consumer", p.Close)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for n := 0; n < operated; {
		ms, err := p.Receive(ctx, 32, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.AckAll(ctx, ms...); err != nil {
			t.Fatal(err)
		}
		n += len(ms)
	}
	g := &operatorGroup{t, c, s, group}
	g.connection("CONSUME_POP", "*", "CONSUME_FROM_FIRST_OFFSET")
	g.status("CONSUME_POP", "", "goroutine ", "operatorSimple")
	if !t.Failed() {
		pairing("mqadmin "+operatorVersion+" about our simple consumer", c.name, "commands 3 as expected 3")
	}
}

// operatorGroup is a group with one member of ours that has nothing left to do.
type operatorGroup struct {
	t    *testing.T
	c    *cluster
	s    *sender
	name string
}

// connection checks what consumerConnection shows.
func (g *operatorGroup) connection(kind, expr, from string) {
	g.t.Helper()
	out := mqadmin(g.t, operatorVersion, "consumerConnection", "-n", g.c.namesrv, "-g", g.name)
	rows := table(out, g.s.client.ID())
	if len(rows) != 1 || len(rows[0]) != 4 || rows[0][2] != "GO" || !strings.HasPrefix(rows[0][3], "V") {
		g.t.Errorf("consumerConnection does not show %s once, with GO and a version:\n%s", g.s.client.ID(), out)
	}
	if !regexp.MustCompile(`(?m)^` + g.s.topic + ` +` + regexp.QuoteMeta(expr) + `$`).MatchString(out) {
		g.t.Errorf("consumerConnection does not show %s with %s:\n%s", g.s.topic, expr, out)
	}
	contains(g.t, "consumerConnection", out, "ConsumeType: "+kind+"\n")
	contains(g.t, "consumerConnection", out, "MessageModel: CLUSTERING\n")
	contains(g.t, "consumerConnection", out, "ConsumeFromWhere: "+from+"\n")
}

// status checks what consumerStatus shows: of the group, and of the member with its
// stacks. queuesOf is the topic whose queues the member has.
func (g *operatorGroup) status(kind, queuesOf string, stack ...string) {
	g.t.Helper()
	check := func(what, out string) {
		g.t.Helper()
		for _, section := range []string{"#Consumer Properties#", "#Consumer Subscription#", "#Consumer Offset#", "#Consumer MQ Detail#", "#Consumer RT&TPS#"} {
			contains(g.t, what, out, section)
		}
		for _, name := range []string{"PROP_CONSUME_TYPE", "PROP_CLIENT_VERSION", "PROP_CONSUMEORDERLY"} {
			if rows := table(out, name); len(rows) != 1 || name == "PROP_CONSUME_TYPE" && rows[0][len(rows[0])-1] != kind {
				g.t.Errorf("%s: %s is %v, and the type should be %s:\n%s", what, name, rows, kind, out)
			}
		}
		if queuesOf == "" {
			return
		}
		offsets := 0
		for _, r := range table(out, queuesOf, brokerName) {
			if len(r) == 4 && !strings.Contains(r[3], "{") {
				offsets += number(g.t, r[3])
			}
		}
		if rows := table(out, queuesOf, brokerName); len(rows) != 2*queues || offsets != operated {
			g.t.Errorf("%s shows %d rows of queues with offsets of %d in all, want %d and %d:\n%s", what, len(rows), offsets, 2*queues, operated, out)
		}
	}

	dir := javaHome(g.t, "mqadmin-status") // where the tool writes what it has found
	out := mqadminIn(g.t, dir, operatorVersion, "consumerStatus", "-n", g.c.namesrv, "-g", g.name)
	rows := slices.DeleteFunc(table(out), func(r []string) bool { return len(r) < 4 || r[1] != g.s.client.ID() })
	if len(rows) != 1 || !strings.HasPrefix(rows[0][2], "V") {
		g.t.Errorf("consumerStatus does not show %s once:\n%s", g.s.client.ID(), out)
		return
	}
	contains(g.t, "consumerStatus", out, "Same subscription in the same group of consumer")
	contains(g.t, "consumerStatus", out, "Rebalance OK")
	file, err := os.ReadFile(filepath.Join(dir, rows[0][3]))
	if err != nil {
		g.t.Error(err)
	}
	check("the file of consumerStatus", string(file))
	if strings.Contains(string(file), "goroutine ") {
		g.t.Error("the file of consumerStatus has stacks that nobody asked for")
	}

	out = mqadmin(g.t, operatorVersion, "consumerStatus", "-n", g.c.namesrv, "-g", g.name, "-i", g.s.client.ID(), "-s")
	check("consumerStatus -i", out)
	for _, text := range append(stack, "#Consumer jstack#") {
		contains(g.t, "consumerStatus -s", out, text)
	}
}

// progress checks what consumerProgress shows: all consumed, and by whom.
func (g *operatorGroup) progress(all int) {
	g.t.Helper()
	ip, _, _ := strings.Cut(g.s.client.ID(), "@")
	var out string
	sum, bad := 0, ""
	for end := time.Now().Add(patience); time.Now().Before(end); { // commits come every 5 s
		out = mqadmin(g.t, operatorVersion, "consumerProgress", "-n", g.c.namesrv, "-g", g.name, "-s", "true")
		sum, bad = 0, ""
		rows := table(out, g.s.topic, brokerName)
		for _, r := range rows {
			if len(r) < 7 || r[3] != r[4] || r[5] != ip || r[6] != "0" {
				bad = fmt.Sprint(r)
				continue
			}
			sum += number(g.t, r[4])
		}
		if bad == "" && sum == all && len(rows) == queues {
			return
		}
	}
	g.t.Errorf("consumerProgress -s shows %d consumed, want %d by %s; bad: %s\n%s", sum, all, ip, bad, out)
}
