package main

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/gorocketmq/rocketmq"
)

// Tags.
const (
	tagPlaced   = "placed"   // an order was placed: a transactional message
	tagPaid     = "paid"     // paid and refunded come in order for each order
	tagRefunded = "refunded" //
	tagLook     = "look"     // look whether the order is paid: a delayed message
	tagOpening  = "opening"  // nobody listens to it, but brokers may make the topic
)

// names are those of the topics and groups of one run. Runs on a shared cluster
// do not see each other.
type names struct {
	orders, payments, timeouts string // topics

	orderService, producers, till, canceller, ledger, logistics string // groups
}

func newNames(run string) names {
	n := func(name string) string {
		if run == "" {
			return name
		}
		return name + "-" + run
	}
	return names{
		orders: n("ShopOrders"), payments: n("ShopPayments"), timeouts: n("ShopTimeouts"),
		orderService: n("shop-orders"), producers: n("shop"), till: n("shop-till"), canceller: n("shop-canceller"),
		ledger: n("shop-ledger"), logistics: n("shop-logistics"),
	}
}

func (n names) topics() []string { return []string{n.orders, n.payments, n.timeouts} }

// event is the body of all messages. Its ID is what makes handling it twice the
// same as handling it once.
type event struct {
	ID      string          `json:"id"`
	Order   int64           `json:"order"`
	Cents   int64           `json:"cents"`
	Address json.RawMessage `json:"address,omitempty"` // a string; an object in the new format
}

// message is the event for a topic. What belongs to one order has one sharding
// key and so stays in order.
func (e event) message(topic, tag string) (*rocketmq.Message, error) {
	body, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	key := strconv.FormatInt(e.Order, 10)
	return &rocketmq.Message{Topic: topic, Tag: tag, Keys: []string{"order-" + key}, ShardingKey: key, Body: body}, nil
}

func readEvent(m *rocketmq.MessageView) (e event, err error) {
	if err := json.Unmarshal(m.Body, &e); err != nil {
		return e, fmt.Errorf("message %s of %s: %w", m.ID, m.Topic, err)
	}
	return e, nil
}
