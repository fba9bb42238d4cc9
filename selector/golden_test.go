package selector

import (
	"bufio"
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
)

// Java's SelectMessageQueueByHash and Hash choose the same queue for the same
// text.
func TestGoldenHash(t *testing.T) {
	f, err := os.Open("testdata/select_by_hash.jsonl")
	require.NoError(t, err)
	defer f.Close()
	n := 0
	for sc := bufio.NewScanner(f); sc.Scan(); {
		var v struct {
			Arg     any         `json:"arg"`
			Type    string      `json:"arg_type"`
			ByCount map[int]int `json:"queue_by_count"`
		}
		require.NoError(t, json.Unmarshal(sc.Bytes(), &v))
		key, ok := v.Arg.(string)
		if v.Type != "String" || !ok || key == "" {
			continue // our keys are texts, and an empty one is none
		}
		n++
		for count, want := range v.ByCount {
			require.Equal(t, want, HashIndex(key, count), "%q of %d", key, count)
			got, err := Hash().Select(&rocketmq.Message{Topic: "t", ShardingKey: key}, queues(count, "a"), "")
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
	}
	require.Greater(t, n, 20)
}
