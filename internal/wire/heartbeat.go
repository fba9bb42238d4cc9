package wire

import (
	"slices"
	"strings"
)

// Values of ConsumerData.ConsumeType.
const (
	ConsumeActively  = "CONSUME_ACTIVELY"  // pull
	ConsumePassively = "CONSUME_PASSIVELY" // push
	ConsumePop       = "CONSUME_POP"       // 5.x
)

// Values of ConsumerData.Model.
const (
	Clustering   = "CLUSTERING"
	Broadcasting = "BROADCASTING"
)

// Values of ConsumerData.From.
const (
	FromLastOffset  = "CONSUME_FROM_LAST_OFFSET"
	FromFirstOffset = "CONSUME_FROM_FIRST_OFFSET"
	FromTimestamp   = "CONSUME_FROM_TIMESTAMP"
)

// Values of Subscription.ExprType.
const (
	ExprTag = "TAG"
	ExprSQL = "SQL92"
)

// Heartbeat is the body of HEART_BEAT (34): all groups of a client.
type Heartbeat struct {
	ClientID    string
	Producers   []string // groups
	Consumers   []ConsumerData
	Fingerprint int32 // Java's hash of the rest; 0 for the classic way
	WithoutSub  bool  // the subscriptions are left out: keep those you know
}

// ConsumerData is one consumer group of a client.
type ConsumerData struct {
	Group         string
	ConsumeType   string
	Model         string
	From          string
	Subscriptions []Subscription // of each topic; those not listed end
	UnitMode      bool
}

// Subscription is what a group wants of a topic.
type Subscription struct {
	Topic       string
	Expr        string // "*", tags with || between, or SQL
	ExprType    string // ExprTag or ExprSQL
	Tags        []string
	Codes       []int32 // JavaHash of each tag
	Version     int64   // ms since 1970; grows with each change
	ClassFilter bool
}

// AppendJSON appends the body.
func (d *Heartbeat) AppendJSON(dst []byte) []byte {
	w := jsonWriter{b: dst}
	w.open('{')
	w.text("clientID", d.ClientID)
	w.key("consumerDataSet")
	w.open('[')
	for i := range d.Consumers {
		c := &d.Consumers[i]
		w.item('{')
		w.optText("consumeFromWhere", c.From)
		w.optText("consumeType", c.ConsumeType)
		w.text("groupName", c.Group)
		w.optText("messageModel", c.Model)
		w.subscriptions("subscriptionDataSet", c.Subscriptions)
		w.bool("unitMode", c.UnitMode)
		w.close('}')
	}
	w.close(']')
	w.int("heartbeatFingerprint", int64(d.Fingerprint))
	w.key("producerDataSet")
	w.open('[')
	for _, g := range d.Producers {
		w.item('{')
		w.text("groupName", g)
		w.close('}')
	}
	w.close(']')
	w.bool("withoutSub", d.WithoutSub)
	w.close('}')
	return w.b
}

// DecodeHeartbeat reads the body.
func DecodeHeartbeat(b []byte) (Heartbeat, error) {
	r := jsonReader{b: b}
	var d Heartbeat
	r.object(func(k jsonKey) {
		switch string(k.text) {
		case "clientID":
			d.ClientID = r.text()
		case "producerDataSet":
			r.array(func() {
				r.object(func(k jsonKey) {
					if string(k.text) == "groupName" {
						d.Producers = append(d.Producers, r.text())
					}
				})
			})
		case "consumerDataSet":
			r.array(func() { d.Consumers = append(d.Consumers, r.consumerData()) })
		case "heartbeatFingerprint":
			d.Fingerprint = r.int32()
		case "withoutSub":
			d.WithoutSub = r.bool()
		}
	})
	return d, r.finish("heartbeat")
}

func (r *jsonReader) consumerData() (d ConsumerData) {
	r.object(func(k jsonKey) {
		switch string(k.text) {
		case "groupName":
			d.Group = r.text()
		case "consumeType":
			d.ConsumeType = r.text()
		case "messageModel":
			d.Model = r.text()
		case "consumeFromWhere":
			d.From = r.text()
		case "subscriptionDataSet":
			d.Subscriptions = r.subscriptions()
		case "unitMode":
			d.UnitMode = r.bool()
		}
	})
	return d
}

func (w *jsonWriter) subscriptions(name string, list []Subscription) {
	w.key(name)
	w.open('[')
	for i := range list {
		w.sep()
		w.subscription(&list[i])
	}
	w.close(']')
}

func (w *jsonWriter) subscription(d *Subscription) {
	w.open('{')
	w.bool("classFilterMode", d.ClassFilter)
	w.key("codeSet")
	w.open('[')
	for _, c := range d.Codes {
		w.sep()
		w.number(int64(c))
	}
	w.close(']')
	w.text("expressionType", orTag(d.ExprType))
	w.text("subString", d.Expr)
	w.int("subVersion", d.Version)
	w.texts("tagsSet", d.Tags)
	w.text("topic", d.Topic)
	w.close('}')
}

func orTag(exprType string) string {
	if exprType == "" {
		return ExprTag
	}
	return exprType
}

func (r *jsonReader) subscriptions() []Subscription {
	var list []Subscription
	r.array(func() { list = append(list, r.subscription()) })
	return list
}

func (r *jsonReader) subscription() Subscription {
	d := Subscription{ExprType: ExprTag}
	r.object(func(k jsonKey) {
		switch string(k.text) {
		case "topic":
			d.Topic = r.text()
		case "subString":
			d.Expr = r.text()
		case "expressionType":
			d.ExprType = orTag(r.text())
		case "tagsSet":
			d.Tags = r.texts()
		case "codeSet":
			r.array(func() { d.Codes = append(d.Codes, r.int32()) })
		case "subVersion":
			d.Version = r.int64()
		case "classFilterMode":
			d.ClassFilter = r.bool()
		}
	})
	return d
}

// TagSubscription is the subscription that a tag expression means, as Java's
// FilterAPI builds it: the tags between || without the space around them, each
// once, and the hashes of those. "" and "*" mean all and have neither. Version
// is left to the caller.
func TagSubscription(topic, expr string) Subscription {
	d := Subscription{Topic: topic, Expr: expr, ExprType: ExprTag}
	if expr == "" || expr == "*" {
		d.Expr = "*"
		return d
	}
	for tag := range strings.SplitSeq(expr, "||") {
		tag = strings.Trim(tag, " \t\r\n\f\v")
		if tag == "" {
			continue
		}
		if !slices.Contains(d.Tags, tag) {
			d.Tags = append(d.Tags, tag)
		}
		if c := JavaHash(tag); !slices.Contains(d.Codes, c) {
			d.Codes = append(d.Codes, c)
		}
	}
	return d
}

// CheckClientConfigBody is the body of CHECK_CLIENT_CONFIG (46).
type CheckClientConfigBody struct {
	ClientID     string
	Group        string
	Namespace    string
	Subscription Subscription
}

// AppendJSON appends the body.
func (d *CheckClientConfigBody) AppendJSON(dst []byte) []byte {
	w := jsonWriter{b: dst}
	w.open('{')
	w.text("clientId", d.ClientID)
	w.text("group", d.Group)
	w.optText("namespace", d.Namespace)
	w.key("subscriptionData")
	w.subscription(&d.Subscription)
	w.close('}')
	return w.b
}

// DecodeCheckClientConfigBody reads the body.
func DecodeCheckClientConfigBody(b []byte) (CheckClientConfigBody, error) {
	r := jsonReader{b: b}
	var d CheckClientConfigBody
	r.object(func(k jsonKey) {
		switch string(k.text) {
		case "clientId":
			d.ClientID = r.text()
		case "group":
			d.Group = r.text()
		case "namespace":
			d.Namespace = r.text()
		case "subscriptionData":
			d.Subscription = r.subscription()
		}
	})
	return d, r.finish("client config")
}
