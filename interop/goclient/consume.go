package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
)

// consumeAll is a member of the group until SIGTERM comes. It does with
// messages what java/Consume.java does, and prints the same.
func consumeAll(namesrv, topic, group string, retries int) error {
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM)
	var c rocketmq.PushConsumer
	for attempt := 1; ; attempt++ {
		var err error
		c, err = rocketmq.NewPushConsumer(
			consumer.WithNameServer([]string{namesrv}),
			consumer.WithGroupName(group),
			consumer.WithInstance(group+"-"+strconv.Itoa(os.Getpid())+"-"+strconv.Itoa(attempt)),
			consumer.WithMaxReconsumeTimes(int32(retries)),
			consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset))
		if err != nil {
			return err
		}
		if err = c.Subscribe(topic, consumer.MessageSelector{Type: consumer.TAG, Expression: "*"}, handle); err != nil {
			return err
		}
		if err = c.Start(); err == nil {
			break
		}
		_ = c.Shutdown() // a call has timed out, which can be on a machine that is shared
		if attempt == 5 {
			return err
		}
	}
	fmt.Println("ready")
	<-end
	if err := c.Shutdown(); err != nil {
		return err
	}
	fmt.Println("left")
	return nil
}

func handle(ctx context.Context, ms ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
	result := consumer.ConsumeSuccess
	for _, m := range ms { // one, unless the client is told otherwise
		number := func(name string) int {
			n, _ := strconv.Atoi(m.GetProperty(name))
			return n
		}
		r := received(m)
		r.Set("begin", strconv.FormatInt(time.Now().UnixMicro(), 10))
		failed := number("dead") > 0 || int(m.ReconsumeTimes) < number("fail")
		time.Sleep(time.Duration(number("work")) * time.Millisecond)
		r.Set("failed", strconv.FormatBool(failed))
		r.Set("end", strconv.FormatInt(time.Now().UnixMicro(), 10))
		fmt.Println("call " + r.Encode())
		if !failed {
			continue
		}
		result = consumer.ConsumeRetryLater
		if retry, ok := primitive.GetConcurrentlyCtx(ctx); ok {
			retry.DelayLevelWhenNextConsume = number("level")
			if number("dead") > 0 {
				retry.DelayLevelWhenNextConsume = -1
			}
		}
	}
	return result, nil
}

// received is the record of a delivery.
func received(m *primitive.MessageExt) url.Values {
	v := url.Values{}
	v.Set("topic", m.Topic)
	v.Set("tag", m.GetTags())
	v.Set("keys", m.GetKeys())
	v.Set("size", strconv.Itoa(len(m.Body)))
	v.Set("sha", fmt.Sprintf("%x", sha256.Sum256(m.Body)))
	v.Set("id", m.MsgId)
	v.Set("offsetId", m.OffsetMsgId)
	v.Set("broker", m.Queue.BrokerName)
	v.Set("queue", strconv.Itoa(m.Queue.QueueId))
	v.Set("offset", strconv.FormatInt(m.QueueOffset, 10))
	v.Set("attempts", strconv.Itoa(int(m.ReconsumeTimes)))
	for name, value := range m.GetProperties() {
		if strings.TrimSpace(name) != "" {
			v.Set("p."+name, value)
		}
	}
	v.Set("sharding", m.GetProperty("__SHARDINGKEY")) // this client's own has another name
	return v
}
