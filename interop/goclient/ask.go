package main

import (
	"context"
	"fmt"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
)

// askAll makes n requests one after the other and checks the answers. The
// last is for one without a body.
func askAll(namesrv, topic, group string, n int) error {
	p, err := start(namesrv, group, "ask")
	if err != nil {
		return err
	}
	if err := introduce(namesrv, topic, group); err != nil {
		return err
	}
	for i := range n {
		key, tag := fmt.Sprint("go-ask-", i), "sync"
		if i == n-1 {
			tag = "empty"
		}
		m := primitive.NewMessage(topic, []byte("\u00bfquestion "+key+"?")).WithTag(tag).WithKeys([]string{key})
		answer, err := p.Request(context.Background(), 15*time.Second, m)
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		want := "re: " + string(m.Body)
		if tag == "empty" {
			want = ""
		}
		if string(answer.Body) != want || answer.GetProperty("answers") != key {
			return fmt.Errorf("%s: answer %q for %q, want %q", key, answer.Body, answer.GetProperty("answers"), want)
		}
	}
	time.Sleep(300 * time.Millisecond) // the client acknowledges an answer after it has handed it out
	fmt.Printf("asked %[1]d answered %[1]d altered 0\n", n)
	return p.Shutdown()
}

// introduce makes the client of the producer known to the brokers, which hand
// answers to it. By itself it sends no heartbeat before a first request to a
// topic that exists; a consumer of the same client does when it starts.
func introduce(namesrv, topic, group string) error {
	c, err := rocketmq.NewPushConsumer(
		consumer.WithNameServer([]string{namesrv}),
		consumer.WithGroupName(group+"_consumer"),
		consumer.WithInstance(group+"-ask"))
	if err != nil {
		return err
	}
	nothing := func(context.Context, ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		return consumer.ConsumeSuccess, nil
	}
	if err := c.Subscribe(topic, consumer.MessageSelector{Type: consumer.TAG, Expression: "none"}, nothing); err != nil {
		return err
	}
	return c.Start()
}
