package wire

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

type body interface{ AppendJSON(dst []byte) []byte }

// bodyKind is a body with its decoder, and the codes whose requests and answers
// carry it.
type bodyKind struct {
	name                string
	decode              func(b []byte) (body, error)
	requests, responses []int32
}

// kindOf makes a kind of a decoder.
func kindOf[T any, P interface {
	*T
	body
}](name string, decode func(b []byte) (T, error), requests, responses []int32) bodyKind {
	return bodyKind{name, func(b []byte) (body, error) {
		x, err := decode(b)
		return P(&x), err
	}, requests, responses}
}

const (
	reqAllConsumerOffset = 43
	reqAllDelayOffset    = 45
	reqTopicsByConsumer  = 343
)

func bodyKinds() []bodyKind {
	codes := func(c ...int32) []int32 { return c }
	return []bodyKind{
		kindOf("route", DecodeRouteData, nil, codes(ReqGetRouteInfoByTopic)),
		kindOf("cluster info", DecodeClusterInfo, nil, codes(ReqGetBrokerClusterInfo)),
		kindOf("member group", DecodeMemberGroup, nil, codes(ReqGetBrokerMemberGroup)),
		kindOf("data version", DecodeDataVersion, codes(ReqQueryDataVersion), codes(ReqQueryDataVersion)),
		kindOf("topic config", DecodeTopicConfig, nil, codes(ReqGetTopicConfig)),
		kindOf("topic configs", DecodeTopicConfigs, nil, codes(ReqGetAllTopicConfig)),
		kindOf("topic config list", DecodeTopicConfigList, codes(ReqUpdateAndCreateTopicList), nil),
		kindOf("registration", DecodeRegisterBrokerBody, codes(ReqRegisterBroker), nil),
		kindOf("table", DecodeKVTable, nil, codes(ReqGetKvlistByNamespace, ReqGetBrokerRuntimeInfo)),
		kindOf("topic list", DecodeTopicList, nil, codes(ReqGetAllTopicListFromNameserver, ReqGetTopicsByCluster,
			ReqGetSystemTopicListFromNS, ReqGetSystemTopicListFromBroker, ReqGetUnitTopicList, reqTopicsByConsumer)),
		kindOf("heartbeat", DecodeHeartbeat, codes(ReqHeartBeat), nil),
		kindOf("client config", DecodeCheckClientConfigBody, codes(ReqCheckClientConfig), nil),
		kindOf("consumer list", DecodeConsumerList, nil, codes(ReqGetConsumerListByGroup)),
		kindOf("group list", DecodeGroupList, nil, codes(ReqQueryTopicConsumeByWho)),
		kindOf("lock", DecodeLockBody, codes(ReqLockBatchMQ, ReqUnlockBatchMQ), nil),
		kindOf("locked queues", DecodeLockedQueues, nil, codes(ReqLockBatchMQ)),
		kindOf("batch ack", DecodeBatchAck, codes(ReqBatchAckMessage), nil),
		kindOf("offset table", DecodeOffsetTable, codes(ReqResetConsumerClientOffset), codes(ReqInvokeBrokerToResetOffset)),
		kindOf("consumer status", DecodeConsumerStatus, nil, codes(ReqGetConsumerStatusFromClient, ReqInvokeBrokerToGetConsumerStatus)),
		kindOf("consumer offsets", DecodeConsumerOffsets, nil, codes(reqAllConsumerOffset)),
		kindOf("delay offsets", DecodeDelayOffsets, nil, codes(reqAllDelayOffset)),
		kindOf("timer metrics", DecodeTimerMetrics, nil, codes(ReqGetTimerMetrics)),
		kindOf("running info", DecodeRunningInfo, nil, codes(ReqGetConsumerRunningInfo)),
		kindOf("consume result", DecodeConsumeDirectlyResult, nil, codes(ReqConsumeMessageDirectly)),
		kindOf("subscription group", DecodeSubscriptionGroup, codes(ReqUpdateAndCreateSubscriptiongroup), codes(ReqGetSubscriptiongroupConfig)),
		kindOf("subscription groups", DecodeSubscriptionGroups, nil, codes(ReqGetAllSubscriptiongroupConfig)),
		kindOf("topic stats", DecodeTopicStats, nil, codes(ReqGetTopicStatsInfo)),
		kindOf("consume stats", DecodeConsumeStats, nil, codes(ReqGetConsumeStats)),
		kindOf("consumer connection", DecodeConsumerConnection, nil, codes(ReqGetConsumerConnectionList)),
		kindOf("pop checkpoint", DecodePopCheckpoint, nil, nil),
		kindOf("pop ack", DecodePopAck, nil, nil),
		kindOf("consumer order info", DecodePopOrders, nil, nil),
		kindOf("assignment request", DecodeAssignmentRequest, codes(ReqQueryAssignment), nil),
		kindOf("assignments", DecodeAssignments, nil, codes(ReqQueryAssignment)),
		kindOf("request mode", DecodeRequestMode, codes(ReqSetMessageRequestMode), nil),
		kindOf("request modes", DecodeRequestModes, nil, codes(ReqGetAllMessageRequestMode)),
		kindOf("producer connection", DecodeProducerConnection, nil, codes(ReqGetProducerConnectionList)),
	}
}

// goldenBodies calls f for each recorded JSON body of a kind.
func goldenBodies(tb testing.TB, f func(name string, k bodyKind, text []byte, v53 bool)) {
	tb.Helper()
	kinds := bodyKinds()
	for _, v := range golden(tb, "wire.jsonl.gz", "exchange") {
		code := int32(v.sub("request").int(tb, "code"))
		for _, k := range kinds {
			if text := v.sub("request").text("body"); text != "" && slices.Contains(k.requests, code) {
				f(v.text("name")+" request", k, []byte(text), v.is("5.3"))
			}
			if text := v.sub("response").text("body"); text != "" && slices.Contains(k.responses, code) {
				f(v.text("name")+" response", k, []byte(text), v.is("5.3"))
			}
		}
	}
}

// tree is a body as maps, slices and texts. Keys keep their form: a quoted one
// its quotes, an object is its JSON.
func tree(t *testing.T, b []byte) any {
	t.Helper()
	r := jsonReader{b: b}
	var value func() any
	value = func() any {
		switch r.peek() {
		case '{':
			m := map[string]any{}
			r.object(func(k jsonKey) {
				s := string(k.text)
				if r.b[r.i-1] == ':' && r.b[r.i-2] == '"' {
					s = `"` + s + `"`
				}
				require.NotContains(t, m, s)
				m[s] = value()
			})
			return m
		case '[':
			l := []any{}
			r.array(func() { l = append(l, value()) })
			return l
		}
		at := r.i
		r.skip()
		return string(r.b[at:r.i])
	}
	x := value()
	require.NoError(t, r.finish("tree"), "%s", b)
	return x
}

// requireWithin compares what Apache wrote with what we wrote of it: all of want
// is in got. What got has beyond it is not of that version.
func requireWithin(t *testing.T, name string, want, got any, extra func(key string) bool) {
	t.Helper()
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		require.True(t, ok, name)
		for k, x := range w {
			if y, ok := g[k]; ok {
				requireWithin(t, name+" "+k, x, y, extra)
			} else {
				require.Contains(t, notKept, k, "%s is lost", name)
			}
		}
		for k := range g {
			if _, ok := w[k]; !ok {
				require.True(t, extra(k), "%s: %s comes from nowhere", name, k)
			}
		}
	case []any:
		g, ok := got.([]any)
		require.True(t, ok, name)
		require.Len(t, g, len(w), name)
		for i := range w {
			requireWithin(t, name, w[i], g[i], extra)
		}
	default:
		require.Equal(t, want, got, name)
	}
}

// notKept are members that we neither need nor write: Java derives them from
// the rest.
var notKept = map[string]bool{`"groupTopicMap"`: true}

// TestGoldenBodies decodes each recorded body and writes it again: the same
// text, up to the order of maps, for 5.3; for 4.9 with the members that 5.3
// added.
func TestGoldenBodies(t *testing.T) {
	seen, same := map[string]int{}, 0
	goldenBodies(t, func(name string, k bodyKind, text []byte, v53 bool) {
		before := bytes.Clone(text)
		x, err := k.decode(text)
		require.NoError(t, err, name)
		require.Equal(t, string(before), string(text), "%s: the input was changed", name)
		got := x.AppendJSON([]byte("{"))[1:]
		extra := func(string) bool { return !v53 || handMade(name, text) }
		if k.name == "route" && bytes.Contains(text, []byte(`{"0":`)) {
			d := x.(*RouteData)
			got = d.AppendStrictJSON(nil)
		}
		requireWithin(t, name, tree(t, text), tree(t, got), extra)
		seen[k.name]++
		if v53 && !handMade(name, text) && k.name != "consumer offsets" {
			require.Len(t, got, len(text), "%s: %s", name, got)
		}
		if bytes.Equal(text, got) {
			same++
		}
		again, err := k.decode(got)
		require.NoError(t, err, name)
		require.Equal(t, x, again, "%s: %s", name, got)
	})
	require.Greater(t, same, 90, "bodies that came back to the byte")
	never := []string{"topic config list", "request mode", "pop checkpoint", "pop ack", "consumer order info"} // nobody sent one
	for _, k := range bodyKinds() {
		if !slices.Contains(never, k.name) {
			require.Positive(t, seen[k.name], k.name)
		}
	}
}

// handMade bodies were sent by a test of Apache's servers with members left out.
func handMade(name string, text []byte) bool {
	return strings.Contains(name, "request") && len(text) < 200
}
