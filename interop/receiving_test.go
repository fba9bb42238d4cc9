//go:build interop

package interop

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/selector"
)

// javaToOurs sends in every way the Java client of a version has and reads it
// back with our consumer.
func javaToOurs(t *testing.T, version string, c *cluster) {
	topic := "Modes_" + strings.ReplaceAll(version, ".", "_")
	c.makeTopic(t, topic)
	dir := javaHome(t, "send-"+version)
	file := filepath.Join(dir, "sent")
	out, err := output(t, patience, javaCommand(dir, javaClasses(t, version), toolFlags, "Send", c.namesrv, topic, file))
	if err != nil {
		t.Fatalf("Send: %v\n%s", err, quiet(out))
	}
	sent := readSent(t, file, out)
	hashed := 0
	for _, r := range sent { // our hash must take the queue that Java's took
		if r["mode"] == "hash" {
			hashed++
			if want := selector.HashIndex(r["p.account"], queues); r["queue"] != strconv.Itoa(want) {
				t.Errorf("%s: key %q went to queue %s, our hash takes %d", r.key(), r["p.account"], r["queue"], want)
			}
		}
	}
	if hashed == 0 {
		t.Errorf("no message was sent by hash")
	}
	line := sameRecords(t, sent, receiveOurs(t, c, topic, len(sent)))
	if !t.Failed() {
		pairing("java "+version, c.name+" -> our consumer", "%s", line)
	}
}

// goToOurs does the same with the official Go client.
func goToOurs(t *testing.T, c *cluster) {
	const topic = "Modes_go"
	c.makeTopic(t, topic)
	dir := newDir(t, "go-client")
	file := filepath.Join(dir, "sent")
	cmd := exec.Command(goBuild(t, "goclient", "."), "-namesrv", c.namesrv, "-topic", topic, "-group", "go_modes", "-out", file)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+dir, "ROCKETMQ_GO_LOG_LEVEL=error")
	out, err := output(t, patience, cmd)
	if err != nil {
		t.Fatalf("goclient: %v\n%s", err, out)
	}
	sent := readSent(t, file, out)
	line := sameRecords(t, sent, receiveOurs(t, c, topic, len(sent)))
	if !t.Failed() {
		pairing("official go client", c.name+" -> our consumer", "%s", line)
	}
}

// readSent reads what a program has sent. It has said how many they are.
func readSent(t *testing.T, file, out string) []record {
	t.Helper()
	sent := readRecords(t, file)
	if want := fmt.Sprintf("sent %d", len(sent)); lastLine(out) != want || len(sent) == 0 {
		t.Fatalf("%d records, but the program says %q", len(sent), lastLine(out))
	}
	return sent
}

// receiveOurs reads a topic with our consumer until n messages have come and
// nothing follows.
func receiveOurs(t *testing.T, c *cluster, topic string, n int) []record {
	t.Helper()
	cl, err := rocketmq.NewClient(rocketmq.WithNameServers(c.namesrv))
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, "client", cl.Close)

	var mu sync.Mutex
	var got []record
	all := make(chan struct{})
	take := consumer.Each(func(_ context.Context, m *rocketmq.MessageView) error {
		mu.Lock()
		defer mu.Unlock()
		if got = append(got, viewRecord(m)); len(got) == n {
			close(all)
		}
		return nil
	})
	push, err := consumer.NewPush(cl, "ours_"+topic,
		consumer.Subscribe(topic, selector.All, take), consumer.StartFrom(rocketmq.Earliest()))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- push.Run(ctx) }()
	select {
	case <-all:
		time.Sleep(200 * time.Millisecond) // room for what must not come: duplicates
	case err := <-ended:
		t.Fatalf("our consumer ended: %v", err)
	case <-time.After(patience): // what is missing is said later
	}
	closed(t, "consumer", push.Close)
	if err := <-ended; err != nil {
		t.Errorf("our consumer: %v", err)
	}
	mu.Lock()
	defer mu.Unlock()
	return got
}
