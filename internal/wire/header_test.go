package wire

import (
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// header is what every header can do.
type header interface {
	ExtEncoder
	DecodeExt(f *Frame) error
}

// v1Send writes the long names of a send.
type v1Send struct{ SendRequest }

func (h *v1Send) EncodeExt(e *Encoder) { h.EncodeV1Ext(e) }

// requestHeaders and responseHeaders are the headers of each code.
var requestHeaders = map[int32]func() header{
	ReqSendMessage:                     func() header { return &v1Send{} },
	ReqSendReplyMessage:                func() header { return &v1Send{} },
	ReqSendMessageV2:                   func() header { return &SendRequest{} },
	ReqSendBatchMessage:                func() header { return &SendRequest{} },
	ReqSendReplyMessageV2:              func() header { return &SendRequest{} },
	ReqConsumerSendMsgBack:             func() header { return &SendBackRequest{} },
	ReqPullMessage:                     func() header { return &PullRequest{} },
	ReqLitePullMessage:                 func() header { return &PullRequest{} },
	ReqQueryConsumerOffset:             func() header { return &QueryOffsetRequest{} },
	ReqUpdateConsumerOffset:            func() header { return &UpdateOffsetRequest{} },
	ReqSearchOffsetByTimestamp:         func() header { return &SearchOffsetRequest{} },
	ReqGetMaxOffset:                    func() header { return &QueueRequest{} },
	ReqGetMinOffset:                    func() header { return &QueueRequest{} },
	ReqGetEarliestMsgStoretime:         func() header { return &QueueRequest{} },
	ReqViewMessageByID:                 func() header { return &ViewMessageRequest{} },
	ReqQueryMessage:                    func() header { return &QueryMessageRequest{} },
	ReqUnregisterClient:                func() header { return &UnregisterClientRequest{} },
	ReqGetConsumerListByGroup:          func() header { return &GroupRequest{} },
	ReqNotifyConsumerIdsChanged:        func() header { return &GroupRequest{} },
	ReqGetConsumerConnectionList:       func() header { return &GroupRequest{} },
	ReqEndTransaction:                  func() header { return &EndTransactionRequest{} },
	ReqCheckTransactionState:           func() header { return &CheckTransactionRequest{} },
	ReqGetConsumerRunningInfo:          func() header { return &RunningInfoRequest{} },
	ReqConsumeMessageDirectly:          func() header { return &ConsumeDirectlyRequest{} },
	ReqResetConsumerClientOffset:       func() header { return &ResetOffsetRequest{} },
	ReqInvokeBrokerToResetOffset:       func() header { return &ResetOffsetRequest{} },
	ReqGetConsumerStatusFromClient:     func() header { return &ConsumerStatusRequest{} },
	ReqInvokeBrokerToGetConsumerStatus: func() header { return &ConsumerStatusRequest{} },
	ReqPushReplyMessageToClient:        func() header { return &PushReplyRequest{} },
	ReqGetRouteInfoByTopic:             func() header { return &RouteRequest{} },
	ReqRegisterBroker:                  func() header { return &RegisterBrokerRequest{} },
	ReqUnregisterBroker:                func() header { return &UnregisterBrokerRequest{} },
	ReqQueryDataVersion:                func() header { return &UnregisterBrokerRequest{} },
	ReqBrokerHeartbeat:                 func() header { return &BrokerHeartbeatRequest{} },
	ReqGetBrokerMemberGroup:            func() header { return &MemberGroupRequest{} },
	ReqWipeWritePermOfBroker:           func() header { return &WipeWritePermRequest{} },
	ReqAddWritePermOfBroker:            func() header { return &WipeWritePermRequest{} },
	ReqDeleteTopicInNameServer:         func() header { return &DeleteTopicInNamesrvRequest{} },
	ReqGetTopicsByCluster:              func() header { return &ClusterRequest{} },
	ReqPutKVConfig:                     func() header { return &KVRequest{} },
	ReqGetKVConfig:                     func() header { return &KVRequest{} },
	ReqDeleteKVConfig:                  func() header { return &KVRequest{} },
	ReqGetKvlistByNamespace:            func() header { return &KVRequest{} },
	ReqGetTopicStatsInfo:               func() header { return &TopicRequest{} },
	ReqDeleteTopicInBroker:             func() header { return &TopicRequest{} },
	ReqRegisterTopicInNameServer:       func() header { return &TopicRequest{} },
	ReqQueryTopicConsumeByWho:          func() header { return &TopicRequest{} },
	ReqGetTopicConfig:                  func() header { return &TopicRequest{} },
	ReqUpdateAndCreateTopic:            func() header { return &CreateTopicRequest{} },
	ReqGetConsumeStats:                 func() header { return &ConsumeStatsRequest{} },
	ReqQueryConsumeTimeSpan:            func() header { return &TimeSpanRequest{} },
	ReqGetProducerConnectionList:       func() header { return &ProducerGroupRequest{} },
	ReqDeleteSubscriptiongroup:         func() header { return &DeleteGroupRequest{} },
	ReqGetSubscriptiongroupConfig:      func() header { return &SubscriptionGroupRequest{} },
	ReqRecallMessage:                   func() header { return &RecallRequest{} },
	ReqPopMessage:                      func() header { return &PopRequest{} },
	ReqAckMessage:                      func() header { return &AckRequest{} },
	ReqChangeMessageInvisibletime:      func() header { return &AckRequest{} },
	ReqNotification:                    func() header { return &NotificationRequest{} },
	ReqPeekMessage:                     func() header { return &PeekRequest{} },
	ReqPollingInfo:                     func() header { return &PollingInfoRequest{} },
}

var responseHeaders = map[int32]func() header{
	ReqSendMessage:             func() header { return &SendResponse{} },
	ReqSendMessageV2:           func() header { return &SendResponse{} },
	ReqSendBatchMessage:        func() header { return &SendResponse{} },
	ReqSendReplyMessage:        func() header { return &SendResponse{} },
	ReqSendReplyMessageV2:      func() header { return &SendResponse{} },
	ReqPullMessage:             func() header { return &PullResponse{} },
	ReqLitePullMessage:         func() header { return &PullResponse{} },
	ReqQueryConsumerOffset:     func() header { return &OffsetResponse{} },
	ReqSearchOffsetByTimestamp: func() header { return &OffsetResponse{} },
	ReqGetMaxOffset:            func() header { return &OffsetResponse{} },
	ReqGetMinOffset:            func() header { return &OffsetResponse{} },
	ReqGetEarliestMsgStoretime: func() header { return &TimestampResponse{} },
	ReqQueryMessage:            func() header { return &QueryMessageResponse{} },
	ReqHeartBeat:               func() header { return &HeartbeatResponse{} },
	ReqRegisterBroker:          func() header { return &RegisterBrokerResponse{} },
	ReqQueryDataVersion:        func() header { return &DataVersionResponse{} },
	ReqWipeWritePermOfBroker:   func() header { return &WipeWritePermResponse{} },
	ReqAddWritePermOfBroker:    func() header { return &AddWritePermResponse{} },
	ReqGetKVConfig:             func() header { return &KVResponse{} },
	ReqGetBrokerConfig:         func() header { return &BrokerConfigResponse{} },
	ReqRecallMessage:           func() header { return &RecallResponse{} },
	ReqPopMessage:              func() header { return &PopResponse{} },
	ReqNotification:            func() header { return &NotificationResponse{} },
	ReqPeekMessage:             func() header { return &PopResponse{} },
	ReqPollingInfo:             func() header { return &PollingInfoResponse{} },

	ReqChangeMessageInvisibletime: func() header { return &ChangeInvisibleResponse{} },
}

// passedOver are fields that mean nothing to us: hooks, namespaces, static
// topics, paging, hints that brokers of 5.3.3 do not use either.
var passedOver = map[string]bool{
	"ReqT": true, "AccessKey": true, "Signature": true, "SecurityToken": true, "ns": true, "nsd": true, "lo": true, "oway": true,
	"committed": true, "force": true, "topicSysFlag": true, "groupSysFlag": true, "requestSource": true, "bname": true,
}

func extOf(t *testing.T, h ExtEncoder, enc Encoding) (*Frame, map[string]string) {
	t.Helper()
	c := Command{Ext: h}
	f := &Frame{}
	require.NoError(t, f.Decode(c.Append(nil, Head{Encoding: enc})))
	m := map[string]string{}
	for i := range f.NumFields() {
		m[string(f.Field(i).Key)] = string(f.Field(i).Value)
	}
	return f, m
}

// checkHeader decodes a recorded header into ours and encodes it again: each
// field comes back as it was, and what does not come back is known to be passed
// over.
func checkHeader(t *testing.T, name string, v vector, code int32, h header) {
	t.Helper()
	var f Frame
	require.NoError(t, f.Decode(v.hex(t, "hex")), name)
	f.Code = code
	require.NoError(t, h.DecodeExt(&f), name)
	_, back := extOf(t, h, f.Encoding)
	want := v.textMap("ext")
	for k, x := range want {
		if got, ok := back[k]; ok {
			require.Equal(t, x, got, "%s: %s", name, k)
		} else {
			allQueues := code == ReqInvokeBrokerToResetOffset && x == "-1" // which is what absent means
			require.True(t, passedOver[k] || x == "" || x == "false" || allQueues, "%s: field %s=%s is lost", name, k, x)
		}
	}
	for k, x := range back {
		_, ok := want[k]
		require.True(t, ok || x == "" || x == "0" || x == "false" || k == "cleanOffset" || k == "removeOffset",
			"%s: field %s=%s comes from nowhere", name, k, x)
	}
}

// hasHeader tells whether an answer carries the fields of its header.
func hasHeader(request, code int32) bool {
	switch {
	case code == RespSuccess:
		return true
	case request == ReqPullMessage || request == ReqLitePullMessage:
		return code == RespPullNotFound || code == RespPullRetryImmediately || code == RespPullOffsetMoved
	}
	return request == ReqQueryMessage && code == RespQueryNotFound || request == ReqPopMessage && code == RespPollingTimeout
}

func TestGoldenHeaders(t *testing.T) {
	requests, responses, lacking := map[int32]bool{}, map[int32]bool{}, 0
	for _, v := range golden(t, "wire.jsonl.gz", "exchange") {
		req, resp := v.sub("request"), v.sub("response")
		code := int32(req.int(t, "code"))
		if f := requestHeaders[code]; f != nil {
			if strings.Contains(resp.text("remark"), "NullPointerException") { // a required field was left out
				lacking++
				var frame Frame
				require.NoError(t, frame.Decode(req.hex(t, "hex")))
				var field *FieldError
				require.ErrorAs(t, f().DecodeExt(&frame), &field, v.text("name"))
				require.Contains(t, field.Error(), "is missing")
				continue
			}
			requests[code] = true
			checkHeader(t, v.text("name"), req, code, f())
		}
		if f := responseHeaders[code]; f != nil && resp != nil && hasHeader(code, int32(resp.int(t, "code"))) {
			responses[code] = true
			checkHeader(t, v.text("name")+" response", resp, code, f())
		}
	}
	require.Len(t, responses, len(responseHeaders))
	require.Positive(t, lacking)
	var without []string
	for code := range requestHeaders {
		if !requests[code] {
			without = append(without, RequestName(code))
		}
	}
	require.ElementsMatch(t, []string{
		"BROKER_HEARTBEAT", "REGISTER_TOPIC_IN_NAMESRV", "DELETE_TOPIC_IN_NAMESRV", "RESET_CONSUMER_CLIENT_OFFSET", "DELETE_KV_CONFIG",
	}, without, "headers without a vector")
}

// fill sets every field of a header to a value of its own.
func fill(t *testing.T, h header) {
	t.Helper()
	n := int64(0)
	yes := true
	var set func(v reflect.Value)
	set = func(v reflect.Value) {
		for i := range v.NumField() {
			n++
			switch x := v.Field(i); x.Kind() {
			case reflect.String:
				x.SetString("s" + string(rune('a'+n)))
			case reflect.Int32, reflect.Int64:
				x.SetInt(n)
			case reflect.Bool:
				x.SetBool(true)
			case reflect.Slice:
				x.SetBytes([]byte("b" + string(rune('a'+n))))
			case reflect.Pointer:
				x.Set(reflect.ValueOf(&yes))
			case reflect.Struct:
				set(x)
			default:
				t.Fatalf("%T has a field of kind %s", h, x.Kind())
			}
		}
	}
	set(reflect.ValueOf(h).Elem())
	switch x := h.(type) { // values that decoding checks
	case *EndTransactionRequest:
		x.CommitOrRollback = SysTranCommit
	case *CreateTopicRequest:
		x.FilterType = FilterMultiTag
	}
}

func allHeaders() map[string]func() (int32, header) {
	all := map[string]func() (int32, header){}
	for _, table := range []map[int32]func() header{requestHeaders, responseHeaders} {
		for code, f := range table {
			all[RequestName(code)+" "+reflect.TypeOf(f()).String()] = func() (int32, header) { return code, f() }
		}
	}
	return all
}

// TestHeadersComeBack encodes each header with every field set and decodes it:
// nothing is lost, in either encoding, and a second decode into the same struct
// leaves nothing of the first.
func TestHeadersComeBack(t *testing.T) {
	for name, f := range allHeaders() {
		for _, enc := range []Encoding{JSON, Binary} {
			code, h := f()
			fill(t, h)
			if x, ok := h.(*KVRequest); ok {
				if code != ReqPutKVConfig {
					x.Value = ""
				}
			}
			frame, _ := extOf(t, h, enc)
			frame.Code = code
			_, back := f()
			fill(t, back)
			require.NoError(t, back.DecodeExt(frame), name)
			require.Equal(t, h, back, name)
		}
	}
}

// TestHeadersNameWhatIsWrong leaves out, empties and spoils one field after the
// other: the answer is an error that names the field, or a header if the field
// is optional or a text.
func TestHeadersNameWhatIsWrong(t *testing.T) {
	failed := 0
	for name, f := range allHeaders() {
		code, h := f()
		fill(t, h)
		_, ext := extOf(t, h, JSON)
		for key := range ext {
			for what, value := range map[string]string{"absent": "", "empty": "", "word": "x", "huge": "99999999999999999999"} {
				m := ExtFields(maps.Clone(ext))
				m[key] = value
				if what == "absent" {
					delete(m, key)
				}
				frame, _ := extOf(t, m, Binary)
				frame.Code = code
				_, back := f()
				err := back.DecodeExt(frame)
				if err == nil {
					continue
				}
				failed++
				var field *FieldError
				require.ErrorAs(t, err, &field, "%s: %s %s", name, key, what)
				require.True(t, field.Field == key || strings.HasSuffix(field.Field, "("+key+")") || strings.HasPrefix(field.Field, key+" ("), "%s: %s %s: %v", name, key, what, err)
			}
		}
		if len(ext) > 0 {
			frame, _ := extOf(t, ExtFields{}, JSON)
			frame.Code = code
			_, back := f()
			if err := back.DecodeExt(frame); err != nil {
				require.ErrorContains(t, err, "is missing", name)
			}
		}
	}
	require.Greater(t, failed, 300)
}

func TestSendRequestBothForms(t *testing.T) {
	h := SendRequest{
		Group: []byte("PG"), Topic: []byte("TopicA"), DefaultTopic: []byte(TopicDefault), DefaultTopicQueues: 4, QueueID: 3,
		SysFlag: 1, BornTime: 1700000000000, Flag: -1, Properties: Properties("a\x011\x02"), ReconsumeTimes: 2, MaxReconsumeTimes: 16,
	}
	for _, code := range []int32{ReqSendMessage, ReqSendMessageV2, ReqSendBatchMessage, ReqSendReplyMessage, ReqSendReplyMessageV2} {
		for _, enc := range []Encoding{JSON, Binary} {
			e := Begin(nil, Head{Code: code, Encoding: enc})
			if code == ReqSendMessage || code == ReqSendReplyMessage {
				h.EncodeV1Ext(&e)
			} else {
				h.EncodeExt(&e)
			}
			var f Frame
			require.NoError(t, f.Decode(e.Finish([]byte("body"))))
			var back SendRequest
			require.NoError(t, back.DecodeExt(&f))
			require.Equal(t, h, back)
		}
	}
	var f Frame
	require.NoError(t, f.Decode((&Command{Code: ReqSendMessageV2, Ext: ExtFields{"a": "g", "b": "t", "c": "d"}}).Append(nil, Head{})))
	require.ErrorContains(t, new(SendRequest).DecodeExt(&f), "defaultTopicQueueNums (d) is missing")
}

func TestHeaderRules(t *testing.T) {
	decode := func(h header, code int32, ext ExtFields) error {
		f, _ := extOf(t, ext, JSON)
		f.Code = code
		return h.DecodeExt(f)
	}
	tx := ExtFields{"producerGroup": "g", "tranStateTableOffset": "1", "commitLogOffset": "2", "commitOrRollback": "4", "msgId": "m"}
	require.ErrorContains(t, decode(&EndTransactionRequest{}, ReqEndTransaction, tx), "commitOrRollback")
	topic := ExtFields{"topic": "t", "defaultTopic": "d", "readQueueNums": "1", "writeQueueNums": "1", "perm": "6", "topicFilterType": "NO_TAG", "order": "false"}
	require.ErrorContains(t, decode(&CreateTopicRequest{}, ReqUpdateAndCreateTopic, topic), "topicFilterType")

	var del DeleteGroupRequest
	require.NoError(t, decode(&del, ReqDeleteSubscriptiongroup, ExtFields{"groupName": "g", "removeOffset": "true"}))
	require.True(t, del.CleanOffset, "the name that 4.9 gives it")

	var q QueryOffsetRequest
	require.NoError(t, decode(&q, ReqQueryConsumerOffset, ExtFields{"consumerGroup": "g", "topic": "t", "queueId": "0", "setZeroIfNotFound": "false"}))
	require.True(t, q.HasSetZero)
	require.False(t, q.SetZero)

	var reset ResetOffsetRequest
	require.NoError(t, decode(&reset, ReqInvokeBrokerToResetOffset, ExtFields{"topic": "t", "group": "g", "timestamp": "-1", "queueId": "-1"}))
	require.False(t, reset.OneQueue)

	var kv KVResponse
	require.NoError(t, decode(&kv, ReqGetKVConfig, ExtFields{}))
	require.False(t, kv.Has)
	require.NoError(t, decode(&kv, ReqGetKVConfig, ExtFields{"value": ""}))
	require.True(t, kv.Has)
	require.Empty(t, kv.Value)
}
