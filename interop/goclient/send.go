package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

// records collects what is known about sent messages, a line for each: fields
// encoded like the query of a URL, as the suite reads them. Properties have
// the prefix "p.", bodies are shown by length and SHA-256.
type records struct {
	mu    sync.Mutex
	lines []string
}

// add adds a message; i is its place in the batch that res is the result of.
// Without a result, of a one-way message, nothing is known about its place.
// This client's sharding key is a property of another name than Java's, so that
// nobody else sees it as one.
func (rs *records) add(mode string, m *primitive.Message, body []byte, res *primitive.SendResult, i int) {
	v := url.Values{}
	v.Set("mode", mode)
	v.Set("topic", m.Topic)
	v.Set("tag", m.GetTags())
	v.Set("keys", m.GetKeys())
	v.Set("size", strconv.Itoa(len(body)))
	v.Set("sha", fmt.Sprintf("%x", sha256.Sum256(body)))
	for name, value := range m.GetProperties() {
		v.Set("p."+name, value)
	}
	if id := m.GetProperty(primitive.PropertyUniqueClientMessageIdKeyIndex); id != "" { // members of batches have none
		v.Set("id", id)
	}
	if res != nil {
		v.Set("broker", res.MessageQueue.BrokerName)
		v.Set("queue", strconv.Itoa(res.MessageQueue.QueueId))
		v.Set("offset", strconv.FormatInt(res.QueueOffset+int64(i), 10))
		if ids := strings.Split(res.OffsetMsgID, ","); i < len(ids) {
			v.Set("offsetId", ids[i])
		} else {
			v.Set("offsetId", fmt.Sprintf("not one of %d", len(ids)))
		}
		if res.Status == primitive.SendOK {
			v.Set("status", "SEND_OK")
		} else {
			v.Set("status", strconv.Itoa(int(res.Status)))
		}
	}
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.lines = append(rs.lines, v.Encode())
}

// sendAll sends in every way the client has and writes the records to a file.
func sendAll(namesrv, topic, group, file string) error {
	rs := &records{}
	for _, f := range []func(*records, string, string, string) error{sendPlain, sendByHash, sendToQueues} {
		if err := f(rs, namesrv, topic, group); err != nil {
			return err
		}
	}
	if err := os.WriteFile(file, []byte(strings.Join(rs.lines, "\n")+"\n"), 0o644); err != nil {
		return err
	}
	fmt.Printf("sent %d\n", len(rs.lines))
	return nil
}

func sendPlain(rs *records, namesrv, topic, group string) error {
	p, err := start(namesrv, group, "plain")
	if err != nil {
		return err
	}
	ctx := context.Background()
	for i := range 100 {
		m := message(topic, "sync", i)
		if i%4 == 0 {
			m.WithShardingKey(fmt.Sprintf("sh\u00e4rd %d", i))
		}
		if err := sync1(rs, p, "sync", m); err != nil {
			return err
		}
	}

	const n = 300
	results := make(chan error, n)
	for i := range n {
		m := message(topic, "async", i)
		err := p.SendAsync(ctx, func(_ context.Context, res *primitive.SendResult, err error) {
			if err == nil {
				rs.add("async", m, m.Body, res, 0)
			}
			results <- err
		}, m)
		if err != nil {
			return fmt.Errorf("async %d: %w", i, err)
		}
	}
	for range n {
		select {
		case err := <-results:
			if err != nil {
				return fmt.Errorf("async: %w", err)
			}
		case <-time.After(30 * time.Second):
			return errors.New("asynchronous sends without a callback")
		}
	}

	for i := range 100 {
		m := message(topic, "oneway", i)
		if err := p.SendOneWay(ctx, m); err != nil {
			return fmt.Errorf("oneway %d: %w", i, err)
		}
		rs.add("oneway", m, m.Body, nil, 0)
	}

	ms := make([]*primitive.Message, 100)
	for i := range ms {
		ms[i] = message(topic, "batch", i)
	}
	res, err := p.SendSync(ctx, ms...)
	if err != nil {
		return fmt.Errorf("batch: %w", err)
	}
	for i, m := range ms {
		rs.add("batch", m, m.Body, res, i)
	}

	for i := range 3 {
		m := message(topic, "compressed", i)
		m.Body = []byte(strings.Repeat("all work and no play ", 1000*(i+1)))
		if err := sync1(rs, p, "compressed", m); err != nil {
			return err
		}
		if !m.Compress {
			return errors.New("the client did not compress")
		}
	}
	return p.Shutdown()
}

func sendByHash(rs *records, namesrv, topic, group string) error {
	p, err := start(namesrv, group, "hash", producer.WithQueueSelector(producer.NewHashQueueSelector()))
	if err != nil {
		return err
	}
	for i := range 60 {
		if err := sync1(rs, p, "hash", message(topic, "hash", i).WithShardingKey(fmt.Sprint("account ", i))); err != nil {
			return err
		}
	}
	return p.Shutdown()
}

func sendToQueues(rs *records, namesrv, topic, group string) error {
	p, err := start(namesrv, group, "queue", producer.WithQueueSelector(producer.NewManualQueueSelector()))
	if err != nil {
		return err
	}
	for i := range 60 {
		m := message(topic, "queue", i)
		m.Queue = &primitive.MessageQueue{Topic: topic, BrokerName: "interop-a", QueueId: i % 8}
		if err := sync1(rs, p, "queue", m); err != nil {
			return err
		}
	}
	return p.Shutdown()
}

func sync1(rs *records, p rocketmq.Producer, mode string, m *primitive.Message) error {
	res, err := p.SendSync(context.Background(), m)
	if err != nil {
		return fmt.Errorf("%s: %w", m.GetKeys(), err)
	}
	rs.add(mode, m, m.Body, res, 0)
	return nil
}

// start starts a producer with an instance name of its own: otherwise the
// client would use the first one's connections for all.
func start(namesrv, group, name string, opts ...producer.Option) (rocketmq.Producer, error) {
	p, err := rocketmq.NewProducer(append([]producer.Option{
		producer.WithNameServer([]string{namesrv}),
		producer.WithGroupName(group),
		producer.WithInstanceName(group + "-" + name),
		producer.WithSendMsgTimeout(10 * time.Second),
	}, opts...)...)
	if err != nil {
		return nil, err
	}
	return p, p.Start()
}

func message(topic, mode string, i int) *primitive.Message {
	m := primitive.NewMessage(topic, append(fmt.Appendf(nil, "%s %d ", mode, i), body(i)...))
	m.WithTag(fmt.Sprint("t", i%3)).WithKeys([]string{fmt.Sprint(mode, "-", i), fmt.Sprint("order", i)})
	m.WithProperty("origin", "go "+mode)
	m.WithProperty("gr\u00fc\u00dfe", fmt.Sprint("\u4f60\u597d \U0001F680 ", i))
	return m
}
