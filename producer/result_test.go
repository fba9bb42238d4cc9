package producer_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/producer"
)

func TestResultText(t *testing.T) {
	var got []string
	for s := range producer.StatusNoReplica + 2 {
		got = append(got, s.String())
	}
	require.Equal(t, []string{"UNKNOWN", "SEND_OK", "FLUSH_DISK_TIMEOUT", "FLUSH_SLAVE_TIMEOUT", "SLAVE_NOT_AVAILABLE", "UNKNOWN"}, got)
	r := producer.Result{MessageID: "id", Queue: rocketmq.Queue{Topic: "t", Broker: "b", ID: 1}, Offset: 7, Status: producer.StatusOK}
	require.Equal(t, "[id=id queue=t/b/1 offset=7 status=SEND_OK]", r.LogValue().String())
}
