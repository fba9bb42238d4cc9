package view

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
)

func encode(pairs ...string) string {
	var b strings.Builder
	for i := 0; i < len(pairs); i += 2 {
		b.WriteString(pairs[i] + "\x01" + pairs[i+1] + "\x02")
	}
	return b.String()
}

func TestProperties(t *testing.T) {
	var arena []string
	props := encode("UNIQ_KEY", "first", "TAGS", "A", "KEYS", " k1  k2 ", "__SHARDINGKEY", "s", "RETRY_TOPIC", "orders", "TRAN_MSG", "true", "user", "x", "UNIQ_KEY", "last")
	var v rocketmq.MessageView
	h := Properties(&v, props, &arena)
	require.Equal(t, History{RetryTopic: "orders", Prepared: true}, h)
	require.Equal(t, rocketmq.MessageView{
		ID: "last", Tag: "A", Keys: []string{"k1", "k2"}, ShardingKey: "s", Properties: rocketmq.Properties(props),
	}, v)

	// The keys of a message keep their place when others come into the arena.
	var w rocketmq.MessageView
	require.Zero(t, Properties(&w, encode("KEYS", "other")[:10], &arena), "an end mark may be missing")
	require.Equal(t, []string{"other"}, w.Keys)
	w.Keys = append(w.Keys, "more")
	require.Equal(t, []string{"k1", "k2"}, v.Keys)
}

func TestPropertiesThatAreNone(t *testing.T) {
	var arena []string
	for _, props := range []string{"", "\x01\x02", "\x02\x02", "TAGS", "TAGS\x01", "TAGS\x01\x02", "\x01value\x02", "KEYS\x01 \x02", "TRAN_MSG\x01no\x02"} {
		var v rocketmq.MessageView
		require.Zero(t, Properties(&v, props, &arena), "%q", props)
		v.Properties = ""
		require.Empty(t, v.Keys)
		v.Keys = nil
		require.Equal(t, rocketmq.MessageView{}, v, "%q", props)
	}
}

func FuzzProperties(f *testing.F) {
	f.Add(encode("UNIQ_KEY", "a", "TAGS", "b", "KEYS", "c d", "RETRY_TOPIC", "t"))
	f.Add("TAGS\x01")
	f.Fuzz(func(t *testing.T, props string) {
		var v rocketmq.MessageView
		var arena []string
		h := Properties(&v, props, &arena)
		for got, name := range map[string]string{v.ID: "UNIQ_KEY", v.Tag: "TAGS", v.ShardingKey: "__SHARDINGKEY", h.RetryTopic: "RETRY_TOPIC"} {
			if want := v.Properties.Get(name); got != "" && got != want {
				t.Fatalf("%s is %q, its property says %q", name, got, want)
			}
		}
		for _, k := range v.Keys {
			if k == "" || strings.Contains(k, " ") {
				t.Fatalf("key %q", k)
			}
		}
	})
}
