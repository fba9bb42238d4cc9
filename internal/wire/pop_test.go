package wire

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The texts are those of Apache's ExtraInfoUtil.
func TestPopHandleGolden(t *testing.T) {
	for _, v := range golden(t, "ids.jsonl", "pop_check_point") {
		h := PopHandle{
			Start: v.int(t, "ckQueueOffset"), PopTime: v.int(t, "popTime"), InvisibleMillis: v.int(t, "invisibleTime"),
			ReviveQueue: int32(v.int(t, "reviveQid")), Retry: PopNormal, Broker: v.text("broker"), QueueID: int32(v.int(t, "queue")), Offset: v.int(t, "offset"),
		}
		switch topic := v.text("topic"); {
		case strings.Contains(topic, "+"):
			h.Retry = PopRetryV2
		case IsRetryTopic(topic):
			h.Retry = PopRetryV1
		}
		require.Equal(t, v.text("text"), h.String())
		back, err := ParsePopHandle(v.text("text"))
		require.NoError(t, err)
		require.Equal(t, h, back)
	}
	for _, v := range golden(t, "ids.jsonl", "pop_check_point_decode") {
		h, err := ParsePopHandle(v.text("text"))
		require.NoError(t, err)
		require.Equal(t, PopHandle{
			Start: v.int(t, "ckQueueOffset"), PopTime: v.int(t, "popTime"), InvisibleMillis: v.int(t, "invisibleTime"),
			ReviveQueue: int32(v.int(t, "reviveQid")), Retry: v.text("retry")[0], Broker: v.text("broker"), QueueID: int32(v.int(t, "queue")), Offset: v.int(t, "offset"),
		}, h)
		require.Equal(t, v.text("real_topic"), PopTopic(h.Retry, "group", "TopicA"))
		require.Equal(t, v["order"], h.ReviveQueue == PopOrderQueue)
	}
}

func TestPopRetryTopicGolden(t *testing.T) {
	for _, v := range golden(t, "ids.jsonl", "pop_retry_topic") {
		require.Equal(t, v.text("v1"), PopTopic(PopRetryV1, v.text("group"), v.text("topic")))
		require.Equal(t, v.text("v2"), PopTopic(PopRetryV2, v.text("group"), v.text("topic")))
		require.Equal(t, v.text("topic"), PopTopic(PopNormal, v.text("group"), v.text("topic")))
		require.Equal(t, v.text("parsed_v1"), PopNormalTopic(v.text("group"), v.text("v1")))
		require.Equal(t, v.text("parsed_v2"), PopNormalTopic(v.text("group"), v.text("v2")))
		require.Equal(t, PopRetryV2, PopRetryOf(v.text("v2")))
	}
}

func TestPopHandleFaults(t *testing.T) {
	const good = "100 1700000000000 60000 3 0 broker-a 0 101"
	_, err := ParsePopHandle(good)
	require.NoError(t, err)
	fields := strings.Split(good, " ")
	for i := range fields {
		short := strings.Join(fields[:i], " ")
		_, err := ParsePopHandle(short)
		require.ErrorIs(t, err, ErrPopHandle, "%q", short)
		if i == 5 {
			continue // any broker is a name
		}
		bad := append([]string(nil), fields...)
		bad[i] = "x"
		_, err = ParsePopHandle(strings.Join(bad, " "))
		require.ErrorIs(t, err, ErrPopHandle, "%q", bad)
	}
	for _, bad := range []string{good + " 1", good + " ", " " + good, strings.Replace(good, " 3 ", " 3000000000 ", 1), strings.Replace(good, " 0 b", " 3 b", 1)} {
		_, err := ParsePopHandle(bad)
		require.ErrorIs(t, err, ErrPopHandle, "%q", bad)
	}
}

func TestPopInfoGolden(t *testing.T) {
	for _, v := range golden(t, "ids.jsonl", "pop_info_strings") {
		var starts, offsets []byte
		for _, entry := range strings.Split(v.text("startOffsetInfo"), ";") {
			retry, queue, value := popEntry(t, entry)
			n, err := strconv.ParseInt(value, 10, 64)
			require.NoError(t, err)
			starts = AppendPopStart(starts, retry, queue, n)
			got, ok := PopStart([]byte(v.text("startOffsetInfo")), retry, queue)
			require.True(t, ok)
			require.Equal(t, n, got)
			key := string(retry) + "@" + strconv.Itoa(int(queue))
			require.Equal(t, v.sub("start_parsed").int(t, key), got)
		}
		for _, entry := range strings.Split(v.text("msgOffsetInfo"), ";") {
			retry, queue, value := popEntry(t, entry)
			var list []int64
			for _, x := range strings.Split(value, ",") {
				n, err := strconv.ParseInt(x, 10, 64)
				require.NoError(t, err)
				list = append(list, n)
			}
			offsets = AppendPopOffsets(offsets, retry, queue, list)
			got, ok := PopEntry([]byte(v.text("msgOffsetInfo")), retry, queue)
			require.True(t, ok)
			require.Equal(t, value, string(got))
		}
		require.Equal(t, v.text("startOffsetInfo"), string(starts))
		require.Equal(t, v.text("msgOffsetInfo"), string(offsets))
	}
}

func popEntry(t *testing.T, entry string) (retry byte, queue int32, value string) {
	t.Helper()
	parts := strings.Split(entry, " ")
	require.Len(t, parts, 3)
	n, err := strconv.Atoi(parts[1])
	require.NoError(t, err)
	return parts[0][0], int32(n), parts[2]
}

func TestPopStartMissing(t *testing.T) {
	for _, info := range []string{"", ";", "0", "0 ", "0 1", "0 1 ", "0 1 x", "1 1 5", "0 2 5", "0 11 5", "00 1 5", "0  1 5"} {
		_, ok := PopStart([]byte(info), PopNormal, 1)
		require.False(t, ok, "%q", info)
	}
	n, ok := PopStart([]byte("garbage;1 1 4;0 1 5;0 1 6"), PopNormal, 1)
	require.True(t, ok)
	require.Equal(t, int64(5), n)
}

func TestPopAcks(t *testing.T) {
	a := PopAcks{Start: 100}
	for _, off := range []int64{109, 100, 102, 102} {
		require.True(t, a.Add(off))
	}
	require.Equal(t, []byte{5, 2}, a.Bits)
	require.Equal(t, []int64{100, 102, 109}, a.Offsets())
	require.False(t, a.Add(99))
	require.False(t, a.Add(100+maxPopBits))
	require.Equal(t, []int64{100, 102, 109}, a.Offsets())
	require.Empty(t, (&PopAcks{}).Offsets())
}

func TestBatchAckFaults(t *testing.T) {
	for _, bad := range []string{`{"acks":[{"b":"*"}]}`, `{"acks":[{"r":"3"}]}`, `{"acks":[{"r":""}]}`, `{"acks":[{"q":"x"}]}`, `{"acks":1}`} {
		_, err := DecodeBatchAck([]byte(bad))
		require.ErrorIs(t, err, ErrBody, bad)
	}
}

func FuzzPop(f *testing.F) {
	f.Add("100 1700000000000 60000 3 0 broker-a 0 101")
	f.Add("0 0 100;1 0 5;2 1 6")
	f.Fuzz(func(t *testing.T, s string) {
		_, _ = PopStart([]byte(s), PopRetryV1, 1)
		h, err := ParsePopHandle(s)
		if err != nil {
			return
		}
		back, err := ParsePopHandle(h.String())
		if err != nil || back != h {
			t.Fatalf("%q became %+v, then %+v, %v", s, h, back, err)
		}
	})
}

func TestPopAllocatesNothing(t *testing.T) {
	req := PopRequest{Group: []byte("CG"), Topic: []byte("TopicA"), QueueID: AnyQueue, MaxMsgs: 32, InvisibleMillis: 60000, ExprType: []byte("TAG"), Expr: []byte("*")}
	resp := PopResponse{PopTime: 1700000000000, InvisibleMillis: 60000, StartOffsets: []byte("0 0 100;1 0 5"), MsgOffsets: []byte("0 0 100,101;1 0 5")}
	handle := PopHandle{Start: 100, PopTime: 1700000000000, InvisibleMillis: 60000, Retry: PopNormal, Broker: "broker-a", Offset: 101}
	text := handle.String()
	buf := make([]byte, 0, 4096)
	var f Frame
	var gotReq PopRequest
	var got PopResponse
	exchange := func() {
		e := Begin(buf[:0], Head{Code: ReqPopMessage})
		req.EncodeExt(&e)
		if f.Decode(e.Finish(nil)) != nil || gotReq.DecodeExt(&f) != nil {
			t.Error("request")
		}
		e = Begin(buf[:0], Head{Flag: FlagResponse})
		resp.EncodeExt(&e)
		if f.Decode(e.Finish(nil)) != nil || got.DecodeExt(&f) != nil {
			t.Error("response")
		}
		if n, ok := PopStart(got.StartOffsets, PopRetryV1, 0); !ok || n != 5 {
			t.Error("start")
		}
		handle.Append(buf[:0])
		if h, err := ParsePopHandle(text); err != nil || h != handle {
			t.Error("handle")
		}
	}
	exchange() // the frame's fields grow once
	require.Zero(t, testing.AllocsPerRun(100, exchange))
}

func TestPopOrderCountsGolden(t *testing.T) {
	for _, v := range golden(t, "ids.jsonl", "pop_info_strings") {
		info := AppendPopCount(nil, PopNormal, 0, 2)
		require.Equal(t, v.text("orderCountInfo"), string(AppendPopMessageCount(info, PopNormal, 0, 101, 1)))
	}
}

func TestPopTopics(t *testing.T) {
	require.Equal(t, PopNormal, PopRetryOf("T+"))
	require.Equal(t, PopRetryV1, PopRetryOf("%RETRY%g_T"))
	require.Equal(t, "T", PopNormalTopic("g", "T"))
	require.Equal(t, "%RETRY%g", PopNormalTopic("g", "%RETRY%g"))
	require.Equal(t, "rmq_sys_REVIVE_LOG_c", ReviveTopic("c"))
}

func TestPopCheckpointOffsets(t *testing.T) {
	d := PopCheckpoint{StartOffset: 100, Count: 3}
	require.Equal(t, 3, d.Len())
	require.EqualValues(t, 102, d.Offset(2))
	require.Equal(t, 1, d.Index(101))
	require.Equal(t, -1, d.Index(103))
	d.Diffs = []int32{0, 5}
	require.Equal(t, 2, d.Len())
	require.Equal(t, 1, d.Index(105))
	require.Equal(t, -1, d.Index(101))
	d = PopCheckpoint{Count: 1 << 30}
	require.Equal(t, 32, d.Len(), "there are no more bits")
}
