package wire

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestGoldenGroupTopics(t *testing.T) {
	for _, v := range golden(t, "ids.jsonl", "group_topics") {
		g := v.text("group")
		require.Equal(t, v.text("retry"), RetryTopic(g))
		require.Equal(t, v.text("dlq"), DLQTopic(g))
		require.Equal(t, v.text("reply_topic_of_cluster"), ReplyTopic(g))
		require.Equal(t, v["system_group"], IsSystemGroup(g), g)
		require.True(t, IsReplyTopic(ReplyTopic(g)))
		require.False(t, IsReplyTopic(RetryTopic(g)))
		require.True(t, IsRetryTopic(RetryTopic(g)))
		require.True(t, IsDLQTopic(DLQTopic(g)))
		require.Equal(t, g, GroupOfRetryTopic(RetryTopic(g)))
		require.Empty(t, GroupOfRetryTopic(DLQTopic(g)))
	}
}

func TestGoldenTopicChecks(t *testing.T) {
	for _, v := range golden(t, "ids.jsonl", "topic_checks") {
		name := v.text("topic")
		require.Equal(t, v["illegal_characters"], ValidateTopic(name) != nil, name)
		require.Equal(t, v["system_topic"], IsSystemTopic(name), name)
		require.Equal(t, v["send_refused"], !MaySendTo(name), name)
	}
	for _, v := range golden(t, "ids.jsonl", "topic_validate") {
		err := ValidateTopic(v.text("topic"))
		require.Equal(t, v["valid"], err == nil, v.text("topic"))
		if err != nil {
			require.ErrorIs(t, err, ErrName)
		}
	}
	for _, v := range golden(t, "ids.jsonl", "system_topics") {
		for _, name := range v.texts("names") {
			require.True(t, IsSystemTopic(name), name)
		}
		for _, name := range v.texts("send_refused") {
			require.False(t, MaySendTo(name), name)
		}
	}
}

func TestValidateGroup(t *testing.T) {
	require.NoError(t, ValidateGroup(strings.Repeat("g", MaxGroupName)))
	require.NoError(t, ValidateTopic(RetryTopic(strings.Repeat("g", MaxGroupName))))
	require.ErrorIs(t, ValidateGroup(strings.Repeat("g", MaxGroupName+1)), ErrName)
	require.ErrorIs(t, ValidateGroup(""), ErrName)
	require.ErrorIs(t, ValidateGroup("a b"), ErrName)
	require.ErrorContains(t, ValidateTopic(strings.Repeat("\x00", 1<<20)), "only %")
}

func TestGoldenReservedProperties(t *testing.T) {
	all := map[string]bool{}
	for _, v := range golden(t, "ids.jsonl", "reserved_property_names") {
		for _, name := range v.texts("names") {
			all[name] = true
			require.True(t, IsReservedProperty(name), name)
		}
	}
	known := []string{"", "a", "keys"}
	for _, v := range golden(t, "ids.jsonl", "constants") {
		if v.text("of") == "MessageConst" {
			for _, x := range v.sub("values") {
				known = append(known, x.(string))
			}
		}
	}
	for _, name := range known {
		require.Equal(t, all[name], IsReservedProperty(name), name)
	}
}

// TestGoldenConstants holds our numbers and names against Apache's, by Apache's
// names.
func TestGoldenConstants(t *testing.T) {
	byClass := map[string]map[string]any{}
	for _, v := range golden(t, "ids.jsonl", "constants") {
		m := byClass[v.text("of")]
		if m == nil {
			m = map[string]any{}
			byClass[v.text("of")] = m
		}
		for k, x := range v.sub("values") {
			m[k] = x
		}
	}
	number := func(class, name string) int64 {
		v := vector(byClass[class])
		return v.int(t, name)
	}
	requests, responses := 0, 0
	for name := range byClass["RequestCode"] {
		if got := RequestName(int32(number("RequestCode", name))); got != "" {
			require.Equal(t, name, got)
			requests++
		}
	}
	for name := range byClass["ResponseCode"] { // 4.9 gives 209 to 211 to failures of its access lists
		if got := ResponseName(int32(number("ResponseCode", name))); got != "" && !strings.HasSuffix(name, "CONFIG_FAILED") {
			require.Equal(t, name, got)
			responses++
		}
	}
	require.Greater(t, requests, 60)
	require.Greater(t, responses, 30)

	flags := map[string]int32{
		"COMPRESSED_FLAG": SysCompressed, "MULTI_TAGS_FLAG": SysMultiTags, "TRANSACTION_PREPARED_TYPE": SysTranPrepared,
		"TRANSACTION_COMMIT_TYPE": SysTranCommit, "TRANSACTION_ROLLBACK_TYPE": SysTranRollback,
		"BORNHOST_V6_FLAG": SysBornV6, "STOREHOSTADDRESS_V6_FLAG": SysStoreV6,
		"COMPRESSION_LZ4_TYPE": SysCompressionLZ4, "COMPRESSION_ZSTD_TYPE": SysCompressionZSTD, "COMPRESSION_ZLIB_TYPE": SysCompressionZLIB,
	}
	for name, want := range flags {
		require.EqualValues(t, number("MessageSysFlag", name), want, name)
	}
	perms := map[string]int32{"PERM_INHERIT": PermInherit, "PERM_WRITE": PermWrite, "PERM_READ": PermRead, "PERM_PRIORITY": PermPriority}
	for name, want := range perms {
		require.EqualValues(t, number("PermName", name), want, name)
	}
	pull := map[string]int32{
		"FLAG_COMMIT_OFFSET": PullCommitOffset, "FLAG_SUSPEND": PullSuspend, "FLAG_SUBSCRIPTION": PullSubscription,
		"FLAG_CLASS_FILTER": PullClassFilter, "FLAG_LITE_PULL_MESSAGE": PullLite,
	}
	for name, want := range pull {
		require.EqualValues(t, number("PullSysFlag", name), want, name)
	}
	for name := range byClass["LanguageCode"] {
		require.Equal(t, name, Language(number("LanguageCode", name)).String())
	}
	props := map[string]string{
		"PROPERTY_KEYS": PropKeys, "PROPERTY_TAGS": PropTags, "PROPERTY_WAIT_STORE_MSG_OK": PropWait,
		"PROPERTY_DELAY_TIME_LEVEL": PropDelay, "PROPERTY_RETRY_TOPIC": PropRetryTopic, "PROPERTY_REAL_TOPIC": PropRealTopic,
		"PROPERTY_REAL_QUEUE_ID": PropRealQueueID, "PROPERTY_TRANSACTION_PREPARED": PropTranMsg,
		"PROPERTY_PRODUCER_GROUP": PropProducerGroup, "PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX": PropUniqKey,
		"PROPERTY_ORIGIN_MESSAGE_ID": PropOriginMessageID, "PROPERTY_CLUSTER": PropCluster, "KEY_SEPARATOR": KeySeparator,
		"PROPERTY_CORRELATION_ID": PropCorrelationID, "PROPERTY_MESSAGE_REPLY_TO_CLIENT": PropReplyToClient,
	}
	for name, want := range props {
		require.Equal(t, byClass["MessageConst"][name], want, name)
	}
}
