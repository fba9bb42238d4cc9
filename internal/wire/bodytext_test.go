package wire

import (
	"bytes"
	"compress/zlib"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func sampleRoute() RouteData {
	return RouteData{
		Queues: []QueueData{{BrokerName: "broker-a", ReadQueues: 8, WriteQueues: 8, Perm: 6}},
		Brokers: []BrokerData{{
			Cluster: "DefaultCluster", BrokerName: "broker-a", Addrs: map[int64]string{1: "10.0.0.2:10911", 0: "10.0.0.1:10911"},
		}},
	}
}

func sampleSubscription() Subscription {
	s := TagSubscription("TopicA", "TagA || TagB")
	s.Version = 1700000000000
	return s
}

var sampleQueue = MessageQueue{Topic: "TopicA", Broker: "broker-a", QueueID: 3}

// sampleBodies are bodies and the texts that Apache's classes make of them.
func sampleBodies() map[string]struct {
	body body
	text string
} {
	type sample = struct {
		body body
		text string
	}
	route := sampleRoute()
	group := NewSubscriptionGroup("CG")
	topic := NewTopicConfig("TopicA")
	topic.ReadQueues, topic.WriteQueues = 8, 8
	const topicText = `{"attributes":{},"order":false,"perm":6,"readQueueNums":8,"topicFilterType":"SINGLE_TAG","topicName":"TopicA","topicSysFlag":0,"writeQueueNums":8}`
	const mq = `{"brokerName":"broker-a","queueId":3,"topic":"TopicA"}`
	const subText = `{"classFilterMode":false,"codeSet":[2598919,2598920],"expressionType":"TAG","subString":"TagA || TagB","subVersion":1700000000000,"tagsSet":["TagA","TagB"],"topic":"TopicA"}`
	const groupText = `{"attributes":{},"brokerId":0,"consumeBroadcastEnable":true,"consumeEnable":true,"consumeFromMinEnable":true,"consumeMessageOrderly":false,"consumeTimeoutMinute":15,"groupName":"CG","groupRetryPolicy":{"type":"CUSTOMIZED"},"groupSysFlag":0,"notifyConsumerIdsChangedEnable":true,"retryMaxTimes":16,"retryQueueNums":1,"whichBrokerWhenConsumeSlowly":1}`
	rich := group
	rich.Subscriptions = []SimpleSub{{Topic: "T", ExprType: "TAG", Expr: "*", Version: 1}}
	rich.RetryPolicy = RetryPolicy{Type: "EXPONENTIAL", Customized: []int64{1000, 5000}, Initial: 5000, Max: 7200000, Multiplier: 2}
	return map[string]sample{
		"route":             {&route, `{"brokerDatas":[{"brokerAddrs":{0:"10.0.0.1:10911",1:"10.0.0.2:10911"},"brokerName":"broker-a","cluster":"DefaultCluster","enableActingMaster":false}],"filterServerTable":{},"queueDatas":[{"brokerName":"broker-a","perm":6,"readQueueNums":8,"topicSysFlag":0,"writeQueueNums":8}]}`},
		"cluster info":      {&ClusterInfo{Brokers: map[string]BrokerData{"broker-a": route.Brokers[0]}, Clusters: map[string][]string{"DefaultCluster": {"broker-a"}}}, `{"brokerAddrTable":{"broker-a":{"brokerAddrs":{0:"10.0.0.1:10911",1:"10.0.0.2:10911"},"brokerName":"broker-a","cluster":"DefaultCluster","enableActingMaster":false}},"clusterAddrTable":{"DefaultCluster":["broker-a"]}}`},
		"member group":      {&MemberGroup{Cluster: "DefaultCluster", BrokerName: "broker-a", Addrs: map[int64]string{0: "x"}}, `{"brokerMemberGroup":{"brokerAddrs":{0:"x"},"brokerName":"broker-a","cluster":"DefaultCluster"}}`},
		"registration":      {&RegisterBrokerBody{FilterServers: []string{"h:1"}, Version: DataVersion{Timestamp: 1700000000000}, MappingVersion: DataVersion{Timestamp: 1700000000000}, Topics: map[string]TopicConfig{"TopicA": topic}}, `{"filterServerList":["h:1"],"topicConfigSerializeWrapper":{"dataVersion":{"counter":0,"stateVersion":0,"timestamp":1700000000000},"mappingDataVersion":{"counter":0,"stateVersion":0,"timestamp":1700000000000},"topicConfigTable":{"TopicA":` + topicText + `},"topicQueueMappingDetailMap":{},"topicQueueMappingInfoMap":{}}}`},
		"table":             {&KVTable{Table: map[string]string{"TopicX": "broker-a:4"}}, `{"table":{"TopicX":"broker-a:4"}}`},
		"topic list":        {&TopicList{Topics: []string{"TopicA"}}, `{"topicList":["TopicA"]}`},
		"topic config":      {&topic, topicText},
		"topic configs":     {&TopicConfigs{Topics: map[string]TopicConfig{"TopicA": topic}}, `{"dataVersion":{"counter":0,"stateVersion":0,"timestamp":0},"mappingDataVersion":{"counter":0,"stateVersion":0,"timestamp":0},"topicConfigTable":{"TopicA":` + topicText + `},"topicQueueMappingDetailMap":{},"topicQueueMappingInfoMap":{}}`},
		"topic config list": {&TopicConfigList{Topics: []TopicConfig{topic}}, `{"topicConfigList":[` + topicText + `]}`},
		"data version":      {&DataVersion{StateVersion: 1, Timestamp: 2, Counter: 3}, `{"counter":3,"stateVersion":1,"timestamp":2}`},
		"heartbeat":         {&Heartbeat{ClientID: "10.0.0.1@1234#99", Producers: []string{"PG"}, Consumers: []ConsumerData{{Group: "CG", ConsumeType: ConsumePassively, Model: Clustering, From: FromLastOffset, Subscriptions: []Subscription{sampleSubscription()}}}}, `{"clientID":"10.0.0.1@1234#99","consumerDataSet":[{"consumeFromWhere":"CONSUME_FROM_LAST_OFFSET","consumeType":"CONSUME_PASSIVELY","groupName":"CG","messageModel":"CLUSTERING","subscriptionDataSet":[` + subText + `],"unitMode":false}],"heartbeatFingerprint":0,"producerDataSet":[{"groupName":"PG"}],"withoutSub":false}`},
		"client config":     {&CheckClientConfigBody{ClientID: "cid", Group: "CG", Subscription: sampleSubscription()}, `{"clientId":"cid","group":"CG","subscriptionData":` + subText + `}`},
		"consumer list":     {&ConsumerList{IDs: []string{"a", "b"}}, `{"consumerIdList":["a","b"]}`},
		"group list":        {&GroupList{Groups: []string{"CG"}}, `{"groupList":["CG"]}`},
		"lock":              {&LockBody{Group: "CG", ClientID: "cid", Queues: []MessageQueue{sampleQueue}}, `{"clientId":"cid","consumerGroup":"CG","mqSet":[` + mq + `],"onlyThisBroker":false}`},
		"locked queues":     {&LockedQueues{Queues: []MessageQueue{sampleQueue}}, `{"lockOKMQSet":[` + mq + `]}`},
		"offset table":      {&OffsetTable{Offsets: map[MessageQueue]int64{sampleQueue: 123}}, `{"offsetTable":{` + mq + `:123}}`},
		"consumer status":   {&ConsumerStatus{Queues: map[MessageQueue]int64{sampleQueue: 123}, Clients: map[string]map[MessageQueue]int64{}}, `{"consumerTable":{},"messageQueueTable":{` + mq + `:123}}`},
		"consumer offsets":  {&ConsumerOffsets{Offsets: map[string]map[int32]int64{"TopicA@CG": {0: 5, 1: 6}}}, `{"dataVersion":{"counter":0,"stateVersion":0,"timestamp":0},"offsetTable":{"TopicA@CG":{0:5,1:6}}}`},
		"delay offsets":     {&DelayOffsets{Offsets: map[int32]int64{1: 0, 2: 15}}, `{"dataVersion":{"counter":0,"stateVersion":0,"timestamp":0},"offsetTable":{1:0,2:15}}`},
		"timer metrics":     {&TimerMetrics{Topics: map[string]TimerMetric{"TopicA": {Count: 2, Timestamp: 3}}}, `{"dataVersion":{"counter":0,"stateVersion":0,"timestamp":0},"timingCount":{"TopicA":{"count":2,"timeStamp":3}}}`},
		"running info": {&RunningInfo{Stack: "s", Queues: map[MessageQueue]ProcessQueueInfo{sampleQueue: {}}, Properties: map[string]string{InfoNameserver: "x"}, Status: map[string]ConsumeStatus{"TopicA": {}}, Subscriptions: []Subscription{sampleSubscription()}},
			`{"jstack":"s","mqPopTable":{},"mqTable":{` + mq + `:{"cachedMsgCount":0,"cachedMsgMaxOffset":0,"cachedMsgMinOffset":0,"cachedMsgSizeInMiB":0,"commitOffset":0,"droped":false,"lastConsumeTimestamp":0,"lastLockTimestamp":0,"lastPullTimestamp":0,"locked":false,"transactionMsgCount":0,"transactionMsgMaxOffset":0,"transactionMsgMinOffset":0,"tryUnlockTimes":0}},"properties":{"PROP_NAMESERVER_ADDR":"x"},"statusTable":{"TopicA":{"consumeFailedMsgs":0,"consumeFailedTPS":0.0,"consumeOKTPS":0.0,"consumeRT":0.0,"pullRT":0.0,"pullTPS":0.0}},"subscriptionSet":[` + subText + `],"userConsumerInfo":{}}`},
		"consume result":      {&ConsumeDirectlyResult{AutoCommit: true, Result: ResultSuccess, Remark: "r", SpentMillis: 3}, `{"autoCommit":true,"consumeResult":"CR_SUCCESS","order":false,"remark":"r","spentTimeMills":3}`},
		"subscription group":  {&rich, strings.Replace(strings.Replace(groupText, `{"type":"CUSTOMIZED"}`, `{"customizedRetryPolicy":{"next":[1000,5000]},"exponentialRetryPolicy":{"initial":5000,"max":7200000,"multiplier":2},"type":"EXPONENTIAL"}`, 1), `"whichBroker`, `"subscriptionDataSet":[{"expression":"*","expressionType":"TAG","topic":"T","version":1}],"whichBroker`, 1)},
		"subscription groups": {&SubscriptionGroups{Groups: map[string]SubscriptionGroup{"CG": group}, Forbidden: map[string]map[string]int32{"CG": {"TopicA": 2}}}, `{"dataVersion":{"counter":0,"stateVersion":0,"timestamp":0},"forbiddenTable":{"CG":{"TopicA":2}},"subscriptionGroupTable":{"CG":` + groupText + `}}`},
		"topic stats":         {&TopicStats{Offsets: map[MessageQueue]TopicOffset{sampleQueue: {MinOffset: 1, MaxOffset: 9, LastUpdate: 1700000000000}}}, `{"offsetTable":{` + mq + `:{"lastUpdateTimestamp":1700000000000,"maxOffset":9,"minOffset":1}},"topicPutTps":0.0}`},
		"consume stats":       {&ConsumeStats{TPS: 1.5, Offsets: map[MessageQueue]OffsetWrapper{sampleQueue: {BrokerOffset: 10, ConsumerOffset: 5, PullOffset: 6, LastTimestamp: 1700000000000}}}, `{"consumeTps":1.5,"offsetTable":{` + mq + `:{"brokerOffset":10,"consumerOffset":5,"lastTimestamp":1700000000000,"pullOffset":6}}}`},
		"consumer connection": {&ConsumerConnection{Connections: []Connection{{ClientID: "cid", ClientAddr: "1.2.3.4:5", Language: "GO", Version: 479}}, From: FromFirstOffset, ConsumeType: ConsumeActively, Model: Broadcasting, Subscriptions: map[string]Subscription{"TopicA": sampleSubscription()}}, `{"connectionSet":[{"clientAddr":"1.2.3.4:5","clientId":"cid","language":"GO","version":479}],"consumeFromWhere":"CONSUME_FROM_FIRST_OFFSET","consumeType":"CONSUME_ACTIVELY","messageModel":"BROADCASTING","subscriptionTable":{"TopicA":` + subText + `}}`},
		"batch ack":           {&BatchAck{Broker: "broker-a", Acks: []PopAcks{{Group: "CG", Topic: "TopicA", Retry: PopNormal, QueueID: 1, ReviveQueue: 2, Start: 100, PopTime: 1700000000000, InvisibleMillis: 60000, Bits: []byte{5, 2}}}}, `{"acks":[{"b":"BQI=","c":"CG","it":60000,"pt":1700000000000,"q":1,"r":"0","rq":2,"so":100,"t":"TopicA"}],"brokerName":"broker-a"}`},
		"pop checkpoint":      {&PopCheckpoint{StartOffset: 100, PopTime: 1700000000000, InvisibleMillis: 60000, Acked: 1<<31 | 1, Count: 2, QueueID: 3, Topic: "TopicA", Group: "GroupA", Diffs: []int32{0, 2}, Broker: "broker-a", Rewritten: "1"}, `{"bm":-2147483647,"bn":"broker-a","c":"GroupA","d":[0,2],"it":60000,"n":2,"pt":1700000000000,"q":3,"reviveTime":1700000060000,"ro":0,"rp":"1","so":100,"t":"TopicA"}`},
		"pop ack":             {&PopAck{Offset: -1, Offsets: []int64{100, 102}, StartOffset: 100, Group: "GroupA", Topic: "TopicA", QueueID: 3, PopTime: 1700000000000, Broker: "broker-a"}, `{"ao":-1,"aol":[100,102],"bn":"broker-a","c":"GroupA","pt":1700000000000,"q":3,"so":100,"t":"TopicA"}`},
		"consumer order info": {&PopOrders{Table: map[string]map[int32]*PopOrder{"TopicA@GroupA": {1: {AttemptID: "att", PopTime: 1700000000000, InvisibleMillis: 60000, Offsets: []int64{5, 6, 8}, Acked: 1, LastTime: 1796000555151, Consumed: map[int64]int32{6: 1, 8: 1}, Visible: map[int64]int64{6: 1700000001000}}}}}, `{"table":{"TopicA@GroupA":{1:{"a":"att","cm":1,"i":60000,"l":1796000555151,"o":[5,1,3],"oc":{6:1,8:1},"ot":{6:1700000001000},"popTime":1700000000000}}}}`},
		"assignment request":  {&AssignmentRequest{ClientID: "cid", Group: "CG", Model: Clustering, Strategy: "AVG", Topic: "TopicA"}, `{"clientId":"cid","consumerGroup":"CG","messageModel":"CLUSTERING","strategyName":"AVG","topic":"TopicA"}`},
		"assignments":         {&Assignments{Known: true, List: []Assignment{{Queue: sampleQueue, Mode: ModePop}}}, `{"messageQueueAssignments":[{"messageQueue":` + mq + `,"mode":"POP"}]}`},
		"request mode":        {&RequestMode{Group: "CG", Topic: "TopicA", Mode: ModePop, ShareQueues: 2}, `{"consumerGroup":"CG","mode":"POP","popShareQueueNum":2,"topic":"TopicA"}`},
		"request modes":       {&RequestModes{Modes: map[string]map[string]RequestMode{"TopicA": {"CG": {Group: "CG", Topic: "TopicA", Mode: ModePop, ShareQueues: 2}}}}, `{"messageRequestModeMap":{"TopicA":{"CG":{"consumerGroup":"CG","mode":"POP","popShareQueueNum":2,"topic":"TopicA"}}}}`},
		"producer connection": {&ProducerConnection{Connections: []Connection{{ClientID: "cid", ClientAddr: "1.2.3.4:5", Language: "GO", Version: 479}}}, `{"connectionSet":[{"clientAddr":"1.2.3.4:5","clientId":"cid","language":"GO","version":479}]}`},
	}
}

// TestBodyTexts writes every kind of body and reads it back.
func TestBodyTexts(t *testing.T) {
	samples := sampleBodies()
	for _, k := range bodyKinds() {
		s, ok := samples[k.name]
		require.True(t, ok, "no sample of %s", k.name)
		require.Equal(t, s.text, string(s.body.AppendJSON([]byte("x"))[1:]), k.name)
		back, err := k.decode([]byte(s.text))
		require.NoError(t, err, k.name)
		require.Equal(t, s.body, back, k.name)
	}
}

// Every prefix of every body is an error and nothing else; null is an empty
// body; space and unknown members are passed over.
func TestBodiesRefuse(t *testing.T) {
	samples := sampleBodies()
	for _, k := range bodyKinds() {
		text := samples[k.name].text
		for n := range len(text) {
			_, err := k.decode([]byte(text[:n]))
			require.ErrorIs(t, err, ErrBody, "%s: %q", k.name, text[:n])
		}
		_, err := k.decode([]byte(text + "}"))
		require.ErrorIs(t, err, ErrBody, k.name)
		for _, ok := range []string{"null", "{}", " {\n}\t"} {
			_, err := k.decode([]byte(ok))
			require.NoError(t, err, "%s: %q", k.name, ok)
		}
		for _, bad := range []string{"5", `"x"`, "[1]", `{"a":1`, "\x00", strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100)} {
			if k.name == "offset table" && bad == "[1]" {
				continue // a list of pairs is a form of it, and refused for the 1
			}
			_, err := k.decode([]byte(bad))
			require.ErrorIs(t, err, ErrBody, "%s: %q", k.name, bad)
		}
		want, err := k.decode([]byte(text))
		require.NoError(t, err)
		more := `{"unknown":[{"x":{1:null}},"\u4e2d",{{"a":1}:[]}],` + text[1:len(text)-1] + "\r\n, \"last\" : -1.5e3 }"
		got, err := k.decode([]byte(more))
		require.NoError(t, err, "%s: %s", k.name, more)
		require.Equal(t, want, got, k.name)
	}
}

func TestRouteStrictForm(t *testing.T) {
	d := sampleRoute()
	strict := string(d.AppendStrictJSON(nil))
	require.Contains(t, strict, `"brokerAddrs":{"0":"10.0.0.1:10911","1":"10.0.0.2:10911"}`)
	d.OrderTopicConf = "\u4e2d\U0001F600\x7f/\"\n:4"
	d.Brokers[0].ZoneName = "z"
	strict = string(d.AppendStrictJSON(nil))
	require.Contains(t, strict, `"orderTopicConf":"\u4E2D\uD83D\uDE00\u007F/\"\n:4"`)
	require.Contains(t, strict, `"enableActingMaster":false,"zoneName":"z"`)
	for _, text := range [][]byte{[]byte(strict), d.AppendJSON(nil)} {
		back, err := DecodeRouteData(text)
		require.NoError(t, err)
		require.Equal(t, d, back)
	}
	c := d.Clone()
	c.Brokers[0].Addrs[0] = "changed"
	c.Queues[0].Perm = 0
	require.Equal(t, "10.0.0.1:10911", d.Brokers[0].Addrs[0])
	require.EqualValues(t, 6, d.Queues[0].Perm)
}

func TestC05_ResetBodyWithObjectKeys(t *testing.T) {
	mq := MessageQueue{Topic: "T", Broker: "b", QueueID: 1}
	five := map[MessageQueue]int64{mq: 5}
	for _, text := range []string{
		`{"offsetTable":{{"brokerName":"b","queueId":1,"topic":"T"}:5}}`,
		`{"offsetTable":[[{"brokerName":"b","queueId":1,"topic":"T"},5]]}`,
		`[[{"brokerName":"b","queueId":1,"topic":"T"},5]]`,
		`{"offsetTable":[{"brokerName":"b","offset":5,"queueId":1,"topic":"T"}]}`,
		`{"offsetTable":{"{\"brokerName\":\"b\",\"queueId\":1,\"topic\":\"T\"}":5}}`,
		` { "offsetTable" : { { "topic" : "T" , "queueId" : "1" , "brokerName" : "b" } : "5" , } } `,
	} {
		d, err := DecodeOffsetTable([]byte(text))
		require.NoError(t, err, text)
		require.Equal(t, five, d.Offsets, text)
		for n := range len(strings.TrimSpace(text)) {
			_, err := DecodeOffsetTable([]byte(text[:n]))
			require.ErrorIs(t, err, ErrBody, "%q", text[:n])
		}
	}
	for _, empty := range []string{`{"offsetTable":{}}`, `{"offsetTable":[]}`, `{"offsetTable":null}`, `{}`, `[]`} {
		d, err := DecodeOffsetTable([]byte(empty))
		require.NoError(t, err, empty)
		require.Empty(t, d.Offsets)
		require.NotNil(t, d.Offsets)
	}
	for _, bad := range []string{
		`{"offsetTable":{{"brokerName":"b"}:"x"}}`, `{"offsetTable":{"T":5}}`, `{"offsetTable":{5:5}}`, `{"offsetTable":[[5]]}`,
		`{"offsetTable":[[{},1,2]]}`, `{"offsetTable":{{"queueId":4294967296}:5}}`, `{"offsetTable":{{"a":}:5}}`, `{"offsetTable":{{}}}`,
	} {
		_, err := DecodeOffsetTable([]byte(bad))
		require.ErrorIs(t, err, ErrBody, bad)
	}
	d := OffsetTable{Offsets: five}
	require.Equal(t, `{"offsetTable":[{"brokerName":"b","offset":5,"queueId":1,"topic":"T"}]}`, string(d.AppendListJSON(nil)))
	require.Equal(t, `{"offsetTable":{{"brokerName":"b","queueId":1,"topic":"T"}:5}}`, string(d.AppendJSON(nil)))
}

// Java writes a reference where it meets an object for the second time.
func TestReferencesAreTolerated(t *testing.T) {
	d, err := DecodeRunningInfo([]byte(`{"mqPopTable":{{"$ref":"$.mqTable.k[0]"}:{"droped":true}},"mqTable":{{"brokerName":"b","queueId":1,"topic":"T"}:{"commitOffset":5},{"$ref":"$.x"}:{"commitOffset":6}},"subscriptionSet":[{"$ref":"$.y"}]}`))
	require.NoError(t, err)
	require.Len(t, d.Queues, 1)
	require.EqualValues(t, 5, d.Queues[MessageQueue{Topic: "T", Broker: "b", QueueID: 1}].CommitOffset)
}

// The official Go client writes some values in its own way.
func TestGoClientDialect(t *testing.T) {
	d, err := DecodeConsumeDirectlyResult([]byte(`{"order":false,"autoCommit":true,"consumeResult":1,"remark":"","spentTimeMills":2}`))
	require.NoError(t, err)
	require.Equal(t, ResultLater, d.Result)
	r, err := DecodeRunningInfo([]byte(`{"mqTable":{{"brokerName":"b","queueId":1,"topic":"T"}:{"dropped":true}}}`))
	require.NoError(t, err)
	require.True(t, r.Queues[MessageQueue{Topic: "T", Broker: "b", QueueID: 1}].Dropped)
}

func TestDecodedDefaults(t *testing.T) {
	g, err := DecodeSubscriptionGroup([]byte(`{"groupName":"g"}`))
	require.NoError(t, err)
	require.Equal(t, NewSubscriptionGroup("g"), g)
	c, err := DecodeTopicConfig([]byte(`{"topicName":"t"}`))
	require.NoError(t, err)
	require.Equal(t, NewTopicConfig("t"), c)
	all, err := DecodeTopicConfigs([]byte(`{"topicConfigTable":{"t":{}}}`))
	require.NoError(t, err)
	require.Equal(t, "t", all.Topics["t"].Name)
	v := DataVersion{StateVersion: 1, Timestamp: 2, Counter: 3}
	require.Equal(t, DataVersion{StateVersion: 1, Timestamp: 9, Counter: 4}, v.Next(9))
}

func TestJSONNumbers(t *testing.T) {
	for text, want := range map[string]int64{"5": 5, `"5"`: 5, "null": 0, `""`: 0, "1e3": 1000, "-2.0": -2} {
		r := jsonReader{b: []byte(text)}
		require.Equal(t, want, r.int64(), text)
		require.NoError(t, r.finish(text))
	}
	for _, bad := range []string{"x", "1.5", "1e40", "true", "[1]", "", "NaN"} {
		r := jsonReader{b: []byte(bad)}
		r.int64()
		require.ErrorIs(t, r.finish("n"), ErrBody, bad)
	}
	r := jsonReader{b: []byte("4294967296")}
	r.int32()
	require.Error(t, r.finish("n"))
}

// As Double.toString has it.
func TestJSONDoubles(t *testing.T) {
	for want, v := range map[string]float64{
		"0.0": 0, "1.0": 1, "0.3": 0.3, "-1.5": -1.5, "9999999.0": 9999999, "1.0E7": 1e7, "1.25E9": 1.25e9, "0.001": 0.001,
		"9.9E-4": 0.00099, "1.0E-5": 1e-5, "null": math.Inf(1), "1.7976931348623157E308": math.MaxFloat64,
	} {
		require.Equal(t, want, string(appendDouble(nil, v)))
	}
	require.Equal(t, "null", string(appendDouble(nil, math.NaN())))
}

func TestRegistrationForms(t *testing.T) {
	for _, v := range golden(t, "wire.jsonl.gz", "registration_body") {
		raw := v.hex(t, "hex")
		require.EqualValues(t, v.int(t, "body_crc32"), BodyCRC(raw))
		d, err := DecodeRegisterBrokerBody(raw)
		require.NoError(t, err)
		require.Equal(t, []string{"h:1"}, d.FilterServers)
		require.Equal(t, DataVersion{Timestamp: 1700000000000, Counter: 3}, d.Version)
		topic := NewTopicConfig("TopicA")
		topic.ReadQueues, topic.WriteQueues = 8, 8
		require.Equal(t, map[string]TopicConfig{"TopicA": topic}, d.Topics)
		if v["compressed"] == false {
			if v.is("5.3") {
				require.Equal(t, v.text("text"), string(d.AppendJSON(nil)))
			}
			continue
		}
		if v.is("5.3") {
			require.Equal(t, string(inflate(t, raw)), string(inflate(t, d.AppendCompressed(nil))))
		}
		for n := range raw {
			_, err := DecodeRegisterBrokerBody(raw[:n])
			require.ErrorIs(t, err, ErrBody, "%d bytes", n)
		}
	}
	d := RegisterBrokerBody{Topics: map[string]TopicConfig{"t": {Name: "t", ReadQueues: 1, WriteQueues: 2, Perm: 4, FilterType: FilterMultiTag, Attributes: map[string]string{"a b": "\"c"}}}}
	back, err := DecodeRegisterBrokerBody(d.AppendCompressed(nil))
	require.NoError(t, err)
	require.Equal(t, d, back)
	require.True(t, bytes.HasPrefix(d.AppendCompressed([]byte("head")), []byte("head\x78")))

	for name, inflated := range map[string][]byte{
		"negative length":  {0xFF, 0xFF, 0xFF, 0xFF},
		"negative count":   {0, 0, 0, 2, '{', '}', 0xFF, 0xFF, 0xFF, 0xFF},
		"huge text":        {0x7F, 0xFF, 0xFF, 0xFF, '{'},
		"topic of 2 parts": {0, 0, 0, 2, '{', '}', 0, 0, 0, 1, 0, 0, 0, 3, 't', ' ', '1', 0, 0, 0, 2, '[', ']'},
		"bad number":       {0, 0, 0, 2, '{', '}', 0, 0, 0, 1, 0, 0, 0, 9, 't', ' ', 'x', ' ', '1', ' ', '6', ' ', 'S', 0, 0, 0, 2, '[', ']'},
	} {
		var z bytes.Buffer
		w := zlib.NewWriter(&z)
		_, err := w.Write(inflated)
		require.NoError(t, err)
		require.NoError(t, w.Close())
		_, err = DecodeRegisterBrokerBody(z.Bytes())
		require.ErrorIs(t, err, ErrBody, name)
	}

	var bomb bytes.Buffer
	w := zlib.NewWriter(&bomb)
	_, err = w.Write([]byte{0, 0, 0, 2, '{', '}', 0, 0, 0, 0, 0, 0, 0, 2, '[', ']'})
	require.NoError(t, err)
	_, err = w.Write(make([]byte, 1<<20)) // what is behind the known parts counts as well
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.Less(t, bomb.Len(), 1<<12)
	_, err = decodeCompressed(bomb.Bytes(), 1<<20)
	require.ErrorContains(t, err, "inflates to more than 1048576 bytes")
	_, err = DecodeRegisterBrokerBody(bomb.Bytes())
	require.NoError(t, err)
}

// An empty type of a retry policy is the default one, like a missing one.
func TestRetryPolicyWithoutType(t *testing.T) {
	for _, policy := range []string{`{}`, `null`, `{"type":""}`, `{"type":null}`} {
		g, err := DecodeSubscriptionGroup([]byte(`{"groupRetryPolicy":` + policy + `}`))
		require.NoError(t, err)
		require.Equal(t, "CUSTOMIZED", g.RetryPolicy.Type, policy)
	}
}
