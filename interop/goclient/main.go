// Command goclient does one of several jobs with the official Go client. With
// -out it sends messages in every way the client has, and writes what it knows
// about each to that file; with -ask it makes requests; with -consume it is a
// member of the group until it is told to end.
//
// Without any of these it makes a round trip: a push consumer subscribed to
// tags a and b, and a producer that sends n messages of those tags
// synchronously and some of tag c that nobody may receive.
//
// Each message that arrives is compared with what was sent: body, tag, key, a
// property, both ids, queue and offset. The last line is
//
//	sent N received N missing 0 duplicates 0 altered 0
//
// and the exit code is 1 if anything is missing, altered or comes unasked.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"sync"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
	"github.com/apache/rocketmq-client-go/v2/rlog"
)

func main() {
	namesrv := flag.String("namesrv", "127.0.0.1:9876", "name server, host:port")
	topic := flag.String("topic", "", "topic; it must exist and be empty")
	group := flag.String("group", "", "consumer group; it must be new")
	n := flag.Int("n", 2000, "messages to send and receive")
	out := flag.String("out", "", "send in all ways, records to this file")
	ask := flag.Bool("ask", false, "make n requests that java/Respond.java or its like answers")
	consume := flag.Bool("consume", false, "consume as the messages say, until SIGTERM")
	retries := flag.Int("retries", -1, "with -consume, the client's maximum; -1 for its default")
	wait := flag.Duration("wait", time.Minute, "how long to wait for the last message")
	flag.Parse()
	if *topic == "" || *group == "" || *n < 1 {
		fmt.Fprintln(os.Stderr, "goclient: -topic, -group and a positive -n are needed")
		os.Exit(2)
	}
	rlog.SetLogLevel("error")
	if *out != "" {
		if err := sendAll(*namesrv, *topic, *group, *out); err != nil {
			fmt.Fprintln(os.Stderr, "goclient:", err)
			os.Exit(1)
		}
		return
	}
	if *consume {
		if err := consumeAll(*namesrv, *topic, *group, *retries); err != nil {
			fmt.Fprintln(os.Stderr, "goclient:", err)
			os.Exit(1)
		}
		return
	}
	if *ask {
		if err := askAll(*namesrv, *topic, *group, *n); err != nil {
			fmt.Fprintln(os.Stderr, "goclient:", err)
			os.Exit(1)
		}
		return
	}
	ok, err := roundTrip(*namesrv, *topic, *group, *n, *wait)
	if err != nil {
		fmt.Fprintln(os.Stderr, "goclient:", err)
		os.Exit(1)
	}
	if !ok {
		os.Exit(1)
	}
}

// inbox collects what the consumer receives, the first copy by key.
type inbox struct {
	mu    sync.Mutex
	byKey map[string]*primitive.MessageExt
	total int
}

func (in *inbox) put(_ context.Context, ms ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, m := range ms {
		if _, again := in.byKey[m.GetKeys()]; !again {
			in.byKey[m.GetKeys()] = m
		}
		in.total++
	}
	return consumer.ConsumeSuccess, nil
}

func (in *inbox) size() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.byKey)
}

type sent struct {
	res  *primitive.SendResult
	body []byte
	tag  string
}

func roundTrip(namesrv, topic, group string, n int, wait time.Duration) (bool, error) {
	in := &inbox{byKey: make(map[string]*primitive.MessageExt, n)}
	c, err := rocketmq.NewPushConsumer(
		consumer.WithNameServer([]string{namesrv}),
		consumer.WithGroupName(group),
		consumer.WithInstance(group+"-c"),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset))
	if err != nil {
		return false, err
	}
	if err := c.Subscribe(topic, consumer.MessageSelector{Type: consumer.TAG, Expression: "a || b"}, in.put); err != nil {
		return false, err
	}
	p, err := rocketmq.NewProducer(
		producer.WithNameServer([]string{namesrv}),
		producer.WithGroupName(group+"_producer"),
		producer.WithInstanceName(group+"-p"),
		producer.WithSendMsgTimeout(10*time.Second))
	if err != nil {
		return false, err
	}
	if err := p.Start(); err != nil {
		return false, err
	}
	if err := c.Start(); err != nil {
		return false, err
	}

	var faults []string
	out := make(map[string]sent, n)
	for i := range n {
		if i%10 == 0 { // must be filtered out
			if _, err := send(p, topic, "c", fmt.Sprintf("other-%d", i), body(i)); err != nil {
				return false, err
			}
		}
		key, tag, b := fmt.Sprintf("key-%d", i), string("ab"[i%2]), body(i)
		res, err := send(p, topic, tag, key, b)
		if err != nil {
			return false, fmt.Errorf("%s: %w", key, err)
		}
		out[key] = sent{res, b, tag}
	}

	for end := time.Now().Add(wait); in.size() < n && time.Now().Before(end); {
		time.Sleep(20 * time.Millisecond)
	}
	time.Sleep(200 * time.Millisecond)   // room for what must not come
	if err := c.Shutdown(); err != nil { // commits the offsets
		return false, err
	}
	if err := p.Shutdown(); err != nil {
		return false, err
	}

	in.mu.Lock()
	defer in.mu.Unlock()
	missing := 0
	for key, s := range out {
		m := in.byKey[key]
		if m == nil {
			missing++
			continue
		}
		faults = append(faults, compare(key, s, m)...)
	}
	unasked := 0
	for key := range in.byKey {
		if _, known := out[key]; !known {
			unasked++
			faults = append(faults, key+": received but never asked for")
		}
	}
	for _, f := range faults[:min(20, len(faults))] {
		fmt.Println("fault:", f)
	}
	received := n - missing
	fmt.Printf("sent %d received %d missing %d duplicates %d altered %d\n",
		n, received, missing, in.total-len(in.byKey), len(faults))
	return missing == 0 && len(faults) == 0, nil
}

func send(p rocketmq.Producer, topic, tag, key string, b []byte) (*primitive.SendResult, error) {
	m := primitive.NewMessage(topic, b).WithTag(tag).WithKeys([]string{key})
	m.WithProperty("origin", "go "+key)
	res, err := p.SendSync(context.Background(), m)
	if err == nil && res.Status != primitive.SendOK {
		err = fmt.Errorf("send status %d", res.Status)
	}
	return res, err
}

// body makes bodies that differ in length and hold every byte value.
func body(i int) []byte {
	b := fmt.Appendf(nil, "message %d ", i)
	for j := range i % 700 {
		b = append(b, byte(i+j))
	}
	return b
}

func compare(key string, s sent, m *primitive.MessageExt) (faults []string) {
	differ := func(what string, want, got any) {
		if want != got {
			faults = append(faults, fmt.Sprintf("%s: %s sent %v, received %v", key, what, want, got))
		}
	}
	if !bytes.Equal(s.body, m.Body) {
		faults = append(faults, fmt.Sprintf("%s: body of %d bytes sent, another of %d received", key, len(s.body), len(m.Body)))
	}
	differ("tag", s.tag, m.GetTags())
	differ("property", "go "+key, m.GetProperty("origin"))
	differ("topic", s.res.MessageQueue.Topic, m.Topic)
	differ("id", s.res.MsgID, m.MsgId)
	differ("offset id", s.res.OffsetMsgID, m.OffsetMsgId)
	differ("queue", s.res.MessageQueue.QueueId, m.Queue.QueueId)
	differ("broker", s.res.MessageQueue.BrokerName, m.Queue.BrokerName)
	differ("offset", s.res.QueueOffset, m.QueueOffset)
	differ("attempts", int32(0), m.ReconsumeTimes)
	return faults
}
