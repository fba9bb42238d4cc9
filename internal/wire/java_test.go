package wire

import (
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestGoldenJavaHash(t *testing.T) {
	for _, v := range golden(t, "ids.jsonl", "java_hash") {
		raw := v.hex(t, "utf8")
		if string(raw) != v.text("s") {
			continue // a lone surrogate, which UTF-8 cannot say
		}
		require.EqualValues(t, v.int(t, "hash"), JavaHash(raw), "%q", raw)
		require.EqualValues(t, v.int(t, "hash"), JavaHash(string(raw)), "%q", raw)
		require.EqualValues(t, v.int(t, "crc32"), BodyCRC(raw), "%q", raw)
	}
}

func TestGoldenTagsCode(t *testing.T) {
	for _, v := range golden(t, "ids.jsonl", "tags_code") {
		code := TagsCode(v.text("tags"))
		require.Equal(t, v.int(t, "code"), code, "%q", v.text("tags"))
		unit := v.hex(t, "consume_queue_unit_hex")
		require.Equal(t, uint64(code), binary.BigEndian.Uint64(unit[12:]), "%q", v.text("tags"))
	}
}

func TestGoldenIndexHash(t *testing.T) {
	for _, v := range golden(t, "ids.jsonl", "index_hash") {
		require.EqualValues(t, v.int(t, "java_hash"), JavaHash(v.text("key")), v.text("key"))
		require.EqualValues(t, v.int(t, "hash"), IndexHash(v.text("key")), v.text("key"))
		if topic, key, ok := strings.Cut(v.text("key"), "#"); ok {
			got := int32(-1)
			require.Zero(t, testing.AllocsPerRun(10, func() { got = IndexHashOf(IndexHashPrefix([]byte(topic)), []byte(key)) }))
			require.EqualValues(t, v.int(t, "hash"), got, v.text("key"))
		}
	}
}

func TestGoldenSubscription(t *testing.T) {
	for _, v := range golden(t, "ids.jsonl", "subscription") {
		s := TagSubscription("T", v.text("expression"))
		want := []int32{}
		for _, x := range v.list("codeSet") {
			n, err := strconv.ParseInt(x.(interface{ String() string }).String(), 10, 32)
			require.NoError(t, err)
			want = append(want, int32(n))
		}
		require.Equal(t, v.text("subString"), s.Expr)
		require.Equal(t, v.text("expressionType"), s.ExprType)
		require.ElementsMatch(t, v.texts("tagsSet"), s.Tags, s.Expr)
		require.ElementsMatch(t, want, s.Codes, s.Expr)
	}
}

func parseQueue(t *testing.T, s string) MessageQueue {
	t.Helper()
	p := strings.Split(s, "/")
	require.Len(t, p, 3)
	n, err := strconv.Atoi(p[2])
	require.NoError(t, err)
	return MessageQueue{Topic: p[0], Broker: p[1], QueueID: int32(n)}
}

func TestGoldenSortOrder(t *testing.T) {
	for _, v := range golden(t, "ids.jsonl", "queue_sort") {
		var got, want []MessageQueue
		for _, s := range v.texts("in") {
			got = append(got, parseQueue(t, s))
		}
		for _, s := range v.texts("out") {
			want = append(want, parseQueue(t, s))
		}
		slices.SortFunc(got, MessageQueue.Compare)
		require.Equal(t, want, got)
	}
	for _, v := range golden(t, "ids.jsonl", "client_id_sort") {
		got := v.texts("in")
		slices.SortFunc(got, CompareJava)
		require.Equal(t, v.texts("out"), got)
	}
	for _, v := range golden(t, "ids.jsonl", "queue_text") {
		q := MessageQueue{Topic: v.text("topic"), Broker: v.text("broker"), QueueID: int32(v.int(t, "queue"))}
		require.Equal(t, v.text("text"), q.String())
	}
}
