//go:build interop

package interop

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/producer"
	"github.com/gorocketmq/rocketmq/selector"
)

// asked is how many requests are made one after the other, and as many at once.
const asked = 30

// requests lets the Java client of a version and ours ask and answer each
// other through the cluster.
func requests(t *testing.T, version string, c *cluster) {
	name := strings.ReplaceAll(version, ".", "_")
	t.Run("java answers", func(t *testing.T) {
		topic := "AskJava_" + name
		c.makeTopic(t, topic)
		answering := respondJava(t, version, c, topic)
		java := askJava(t, version, c, topic, 0)
		ours := askOurs(t, c, topic)
		noFaults(t, answering)
		if !t.Failed() {
			control := ""
			if c.apache {
				control = " (control)"
			}
			pairing("java "+version, c.name+" -> java "+version+" answers"+control, "%s", java)
			pairing("our requests", c.name+" -> java "+version+" answers", "%s", ours)
		}
	})
	t.Run("we answer", func(t *testing.T) {
		topic := "AskOurs_" + name
		c.makeTopic(t, topic)
		stop := respondOurs(t, c, topic)
		empty := 3
		if c.apache && version != "4.9.7" {
			empty = 0 // Apache's broker of 5.x fails on a reply without a body
		}
		line := askJava(t, version, c, topic, empty)
		stop()
		if !t.Failed() {
			pairing("java "+version, c.name+" -> our consumer answers", "%s", line)
		}
	})
}

// requestsGo lets the official Go client ask our consumer.
func requestsGo(t *testing.T, c *cluster) {
	const topic, n = "Ask_go", 20
	c.makeTopic(t, topic)
	stop := respondOurs(t, c, topic)
	cmd := exec.Command(goBuild(t, "goclient", "."), "-namesrv", c.namesrv, "-topic", topic, "-group", "go_ask", "-ask", "-n", strconv.Itoa(n))
	cmd.Dir = newDir(t, "go-client")
	cmd.Env = append(os.Environ(), "HOME="+cmd.Dir, "ROCKETMQ_GO_LOG_LEVEL=error")
	out, err := output(t, patience, cmd)
	stop()
	want := fmt.Sprintf("asked %[1]d answered %[1]d altered 0", n)
	if got := lastLine(out); err != nil || got != want {
		t.Fatalf("%v, last line %q, want %q; output:\n%s", err, got, want, out)
	}
	pairing("official go client", c.name+" -> our consumer answers", "%s", want)
}

// respondJava starts a responder on a topic. It answers what is in there.
func respondJava(t *testing.T, version string, c *cluster, topic string) *server {
	t.Helper()
	dir := javaHome(t, "respond-"+version)
	s, _ := startServer(t, "respond-"+version, "ready", javaCommand(dir, javaClasses(t, version), toolFlags,
		"Respond", c.namesrv, topic, "respond_"+topic))
	return s
}

// noFaults checks what a responder has printed.
func noFaults(t *testing.T, s *server) {
	t.Helper()
	b, err := os.ReadFile(s.log)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(b), "fault:") {
		t.Errorf("%s:\n%s", s.name, s.tail(20))
	}
}

// askJava makes requests with the Java client of a version, some of them for
// an answer without a body.
func askJava(t *testing.T, version string, c *cluster, topic string, empty int) string {
	t.Helper()
	how := "sync"
	if version == "5.3.3" {
		how = "callback" // its waiting form takes the end of the sending for the answer
	}
	dir := javaHome(t, "ask-"+version)
	out, err := output(t, patience, javaCommand(dir, javaClasses(t, version), toolFlags,
		"Ask", c.namesrv, topic, strconv.Itoa(asked), strconv.Itoa(empty), how))
	want := fmt.Sprintf("asked %[1]d answered %[1]d altered 0", 2*asked+empty)
	if err != nil || !strings.Contains(out, want+"\n") { // 4.9.7 logs after it
		t.Fatalf("%v, no line %q; output:\n%s", err, want, quiet(out))
	}
	return want
}

// askOurs makes requests with our producer and checks the answers.
func askOurs(t *testing.T, c *cluster, topic string) string {
	t.Helper()
	s := newSender(t, c, topic)
	var mu sync.Mutex
	answered := 0
	s.with(func(ctx context.Context, p *producer.Producer) {
		ask := func(i int) {
			m := s.message("ask", i)
			view, err := p.Request(ctx, m)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Errorf("%s: %v", m.Keys[0], err)
				return
			}
			answered++
			if got, want := string(view.Body), "re: "+string(m.Body); got != want {
				t.Errorf("%s: answer %q, want %q", m.Keys[0], got, want)
			}
			if got, want := view.Properties.Get("answers"), strings.Join(m.Keys, " "); got != want {
				t.Errorf("%s: the answer is for %q", want, got)
			}
		}
		for i := range asked {
			ask(i)
		}
		var all sync.WaitGroup
		for i := range asked {
			all.Go(func() { ask(asked + i) })
		}
		all.Wait()
	})
	return fmt.Sprintf("asked %d answered %d altered 0", 2*asked, answered)
}

// respondOurs answers requests with our consumer and producer until stop is
// called: as java/Respond.java does, and without a body if the tag is "empty".
func respondOurs(t *testing.T, c *cluster, topic string) (stop func()) {
	t.Helper()
	cl, err := rocketmq.NewClient(rocketmq.WithNameServers(c.namesrv))
	if err != nil {
		t.Fatal(err)
	}
	p, err := producer.New(cl, producer.WithTimeout(20*time.Second, 10*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	answer := consumer.Each(func(ctx context.Context, m *rocketmq.MessageView) error {
		body := []byte("re: " + string(m.Body))
		if m.Tag == "empty" {
			body = nil
		}
		reply, err := rocketmq.NewReply(m, body)
		if err == nil {
			reply.Properties = map[string]string{"answers": strings.Join(m.Keys, " ")}
			_, err = p.Send(ctx, reply)
		}
		if err != nil {
			t.Errorf("answering %s: %v", m.Keys, err)
		}
		return nil
	})
	push, err := consumer.NewPush(cl, "respond_"+topic,
		consumer.Subscribe(topic, selector.All, answer), consumer.StartFrom(rocketmq.Earliest()))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- push.Run(context.WithoutCancel(t.Context())) }()
	stop = sync.OnceFunc(func() {
		closed(t, "consumer", push.Close)
		if err := <-ended; err != nil {
			t.Errorf("our consumer: %v", err)
		}
		closed(t, "client", cl.Close)
	})
	t.Cleanup(stop)
	select {
	case <-push.Ready():
	case err := <-ended:
		ended <- err
		t.Fatalf("our consumer ended: %v", err)
	case <-time.After(patience):
		t.Fatalf("our consumer is not ready after %v", patience)
	}
	return stop
}
