package wire

import "cmp"

// SubscriptionGroup is a consumer group as a broker keeps it.
type SubscriptionGroup struct {
	Name                         string
	ConsumeEnable                bool
	ConsumeFromMinEnable         bool
	ConsumeBroadcastEnable       bool
	ConsumeMessageOrderly        bool // 5.x, as are those marked below
	RetryQueues                  int32
	RetryMaxTimes                int32
	RetryPolicy                  RetryPolicy // 5.x
	BrokerID                     int64
	WhichBrokerWhenConsumeSlowly int64
	NotifyConsumerIDsChanged     bool
	SysFlag                      int32             // 5.x
	ConsumeTimeoutMinutes        int32             // 5.x
	Subscriptions                []SimpleSub       // 5.x; nil: absent
	Attributes                   map[string]string // 5.x
}

// RetryPolicy is how long a group waits between attempts.
type RetryPolicy struct {
	Type       string  // "CUSTOMIZED" or "EXPONENTIAL"
	Customized []int64 // ms before each attempt; nil: absent
	// Of the exponential policy, in ms; all 0: absent.
	Initial, Max, Multiplier int64
}

// SimpleSub is a subscription in a group's configuration.
type SimpleSub struct {
	Topic, ExprType, Expr string
	Version               int64
}

// NewSubscriptionGroup is a group with Apache's defaults.
func NewSubscriptionGroup(name string) SubscriptionGroup {
	return SubscriptionGroup{
		Name: name, ConsumeEnable: true, ConsumeFromMinEnable: true, ConsumeBroadcastEnable: true,
		RetryQueues: 1, RetryMaxTimes: 16, RetryPolicy: RetryPolicy{Type: "CUSTOMIZED"},
		WhichBrokerWhenConsumeSlowly: 1, NotifyConsumerIDsChanged: true, ConsumeTimeoutMinutes: 15,
	}
}

// AppendJSON appends the body of codes 200 and 352.
func (d *SubscriptionGroup) AppendJSON(dst []byte) []byte {
	w := jsonWriter{b: dst}
	w.group(d)
	return w.b
}

func (w *jsonWriter) group(d *SubscriptionGroup) {
	w.open('{')
	w.textMap("attributes", d.Attributes)
	w.int("brokerId", d.BrokerID)
	w.bool("consumeBroadcastEnable", d.ConsumeBroadcastEnable)
	w.bool("consumeEnable", d.ConsumeEnable)
	w.bool("consumeFromMinEnable", d.ConsumeFromMinEnable)
	w.bool("consumeMessageOrderly", d.ConsumeMessageOrderly)
	w.int("consumeTimeoutMinute", int64(d.ConsumeTimeoutMinutes))
	w.text("groupName", d.Name)
	w.retryPolicy(&d.RetryPolicy)
	w.int("groupSysFlag", int64(d.SysFlag))
	w.bool("notifyConsumerIdsChangedEnable", d.NotifyConsumerIDsChanged)
	w.int("retryMaxTimes", int64(d.RetryMaxTimes))
	w.int("retryQueueNums", int64(d.RetryQueues))
	if d.Subscriptions != nil {
		w.simpleSubs(d.Subscriptions)
	}
	w.int("whichBrokerWhenConsumeSlowly", d.WhichBrokerWhenConsumeSlowly)
	w.close('}')
}

func (w *jsonWriter) retryPolicy(p *RetryPolicy) {
	w.key("groupRetryPolicy")
	w.open('{')
	if p.Customized != nil {
		w.key("customizedRetryPolicy")
		w.open('{')
		w.key("next")
		w.open('[')
		for _, ms := range p.Customized {
			w.sep()
			w.number(ms)
		}
		w.close(']')
		w.close('}')
	}
	if p.Initial != 0 || p.Max != 0 || p.Multiplier != 0 {
		w.key("exponentialRetryPolicy")
		w.open('{')
		w.int("initial", p.Initial)
		w.int("max", p.Max)
		w.int("multiplier", p.Multiplier)
		w.close('}')
	}
	w.optText("type", p.Type)
	w.close('}')
}

func (w *jsonWriter) simpleSubs(list []SimpleSub) {
	w.key("subscriptionDataSet")
	w.open('[')
	for _, s := range list {
		w.item('{')
		w.text("expression", s.Expr)
		w.text("expressionType", s.ExprType)
		w.text("topic", s.Topic)
		w.int("version", s.Version)
		w.close('}')
	}
	w.close(']')
}

// DecodeSubscriptionGroup reads the body. What is absent has Apache's default.
func DecodeSubscriptionGroup(b []byte) (SubscriptionGroup, error) {
	r := jsonReader{b: b}
	d := r.group()
	return d, r.finish("subscription group")
}

func (r *jsonReader) group() SubscriptionGroup {
	d := NewSubscriptionGroup("")
	r.object(func(k jsonKey) {
		switch string(k.text) {
		case "groupName":
			d.Name = r.text()
		case "consumeEnable":
			d.ConsumeEnable = r.bool()
		case "consumeFromMinEnable":
			d.ConsumeFromMinEnable = r.bool()
		case "consumeBroadcastEnable":
			d.ConsumeBroadcastEnable = r.bool()
		case "consumeMessageOrderly":
			d.ConsumeMessageOrderly = r.bool()
		case "retryQueueNums":
			d.RetryQueues = r.int32()
		case "retryMaxTimes":
			d.RetryMaxTimes = r.int32()
		case "groupRetryPolicy":
			d.RetryPolicy = r.retryPolicy()
		case "brokerId":
			d.BrokerID = r.int64()
		case "whichBrokerWhenConsumeSlowly":
			d.WhichBrokerWhenConsumeSlowly = r.int64()
		case "notifyConsumerIdsChangedEnable":
			d.NotifyConsumerIDsChanged = r.bool()
		case "groupSysFlag":
			d.SysFlag = r.int32()
		case "consumeTimeoutMinute":
			d.ConsumeTimeoutMinutes = r.int32()
		case "subscriptionDataSet":
			d.Subscriptions = r.simpleSubs()
		case "attributes":
			d.Attributes = r.textMap()
		}
	})
	return d
}

func (r *jsonReader) retryPolicy() RetryPolicy {
	p := RetryPolicy{Type: "CUSTOMIZED"}
	r.object(func(k jsonKey) {
		switch string(k.text) {
		case "type":
			p.Type = cmp.Or(r.text(), p.Type)
		case "customizedRetryPolicy":
			r.object(func(k jsonKey) {
				if string(k.text) == "next" {
					p.Customized = []int64{}
					r.array(func() { p.Customized = append(p.Customized, r.int64()) })
				}
			})
		case "exponentialRetryPolicy":
			r.object(func(k jsonKey) {
				switch string(k.text) {
				case "initial":
					p.Initial = r.int64()
				case "max":
					p.Max = r.int64()
				case "multiplier":
					p.Multiplier = r.int64()
				}
			})
		}
	})
	return p
}

func (r *jsonReader) simpleSubs() []SimpleSub {
	if r.null() {
		return nil
	}
	list := []SimpleSub{}
	r.array(func() {
		var s SimpleSub
		r.object(func(k jsonKey) {
			switch string(k.text) {
			case "topic":
				s.Topic = r.text()
			case "expressionType":
				s.ExprType = r.text()
			case "expression":
				s.Expr = r.text()
			case "version":
				s.Version = r.int64()
			}
		})
		list = append(list, s)
	})
	return list
}

// SubscriptionGroups is the body of GET_ALL_SUBSCRIPTIONGROUP_CONFIG (201), and
// the file config/subscriptionGroup.json of a broker.
type SubscriptionGroups struct {
	Version   DataVersion
	Groups    map[string]SubscriptionGroup
	Forbidden map[string]map[string]int32 // group, topic, bits; 5.x
}

// AppendJSON appends the body.
func (d *SubscriptionGroups) AppendJSON(dst []byte) []byte {
	w := jsonWriter{b: dst}
	w.open('{')
	w.key("dataVersion")
	w.dataVersion(d.Version)
	w.key("forbiddenTable")
	w.open('{')
	for _, g := range sortedKeys(d.Forbidden) {
		w.textKey(g)
		w.open('{')
		for _, t := range sortedKeys(d.Forbidden[g]) {
			w.textKey(t)
			w.number(int64(d.Forbidden[g][t]))
		}
		w.close('}')
	}
	w.close('}')
	w.key("subscriptionGroupTable")
	w.open('{')
	for _, name := range sortedKeys(d.Groups) {
		w.textKey(name)
		g := d.Groups[name]
		w.group(&g)
	}
	w.close('}')
	w.close('}')
	return w.b
}

// DecodeSubscriptionGroups reads the body.
func DecodeSubscriptionGroups(b []byte) (SubscriptionGroups, error) {
	r := jsonReader{b: b}
	d := SubscriptionGroups{Groups: map[string]SubscriptionGroup{}, Forbidden: map[string]map[string]int32{}}
	r.object(func(k jsonKey) {
		switch string(k.text) {
		case "dataVersion":
			d.Version = r.dataVersion()
		case "forbiddenTable":
			r.object(func(k jsonKey) {
				bits := map[string]int32{}
				d.Forbidden[string(k.text)] = bits
				r.object(func(k jsonKey) {
					topic := string(k.text)
					bits[topic] = r.int32()
				})
			})
		case "subscriptionGroupTable":
			r.object(func(k jsonKey) {
				name := string(k.text)
				g := r.group()
				if g.Name == "" {
					g.Name = name
				}
				d.Groups[name] = g
			})
		}
	})
	return d, r.finish("subscription groups")
}
