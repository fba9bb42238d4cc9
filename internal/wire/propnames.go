package wire

// Names of the properties that have a meaning to clients or brokers, as
// MessageConst has them.
const (
	PropKeys                 = "KEYS"  // business keys, space between
	PropTags                 = "TAGS"  // the tag
	PropWait                 = "WAIT"  // "true": answer after flush and replication
	PropDelay                = "DELAY" // delay level, from 1
	PropTimerDelaySec        = "TIMER_DELAY_SEC"
	PropTimerDelayMs         = "TIMER_DELAY_MS"
	PropTimerDeliverMs       = "TIMER_DELIVER_MS" // ms since 1970
	PropTimerOutMs           = "TIMER_OUT_MS"
	PropTimerEnqueueMs       = "TIMER_ENQUEUE_MS"
	PropTimerDequeueMs       = "TIMER_DEQUEUE_MS"
	PropTimerRollTimes       = "TIMER_ROLL_TIMES"
	PropTimerDelUniqKey      = "TIMER_DEL_UNIQKEY"
	PropTimerDelayLevel      = "TIMER_DELAY_LEVEL"
	PropRetryTopic           = "RETRY_TOPIC" // original topic of a retried message
	PropRealTopic            = "REAL_TOPIC"  // target while parked
	PropRealQueueID          = "REAL_QID"
	PropTranMsg              = "TRAN_MSG" // "true": half message
	PropProducerGroup        = "PGROUP"
	PropMinOffset            = "MIN_OFFSET" // set by the client on pull
	PropMaxOffset            = "MAX_OFFSET"
	PropBuyerID              = "BUYER_ID"
	PropTransferFlag         = "TRANSFER_FLAG"
	PropCorrectionFlag       = "CORRECTION_FLAG"
	PropMQ2Flag              = "MQ2_FLAG"
	PropOriginMessageID      = "ORIGIN_MESSAGE_ID" // first offset id across retries
	PropReconsumeTime        = "RECONSUME_TIME"
	PropMaxReconsumeTimes    = "MAX_RECONSUME_TIMES"
	PropConsumeStartTime     = "CONSUME_START_TIME"
	PropMsgRegion            = "MSG_REGION"
	PropTraceOn              = "TRACE_ON"
	PropUniqKey              = "UNIQ_KEY" // the client's message id
	PropExtendUniqInfo       = "EXTEND_UNIQ_INFO"
	PropInnerNum             = "INNER_NUM"
	PropInnerBase            = "INNER_BASE"
	PropDupInfo              = "DUP_INFO"
	PropCheckImmunitySeconds = "CHECK_IMMUNITY_TIME_IN_SECONDS"
	PropTranPreparedOffset   = "TRAN_PREPARED_QUEUE_OFFSET"
	PropTransactionID        = "__transactionId__"
	PropTranCheckTimes       = "TRANSACTION_CHECK_TIMES"
	PropInstanceID           = "INSTANCE_ID"
	PropCorrelationID        = "CORRELATION_ID"
	PropReplyToClient        = "REPLY_TO_CLIENT"
	PropTTL                  = "TTL" // ms
	PropArriveTime           = "ARRIVE_TIME"
	PropPushReplyTime        = "PUSH_REPLY_TIME"
	PropCluster              = "CLUSTER"
	PropMsgType              = "MSG_TYPE" // MsgTypeReply for replies
	PropPopCK                = "POP_CK"
	PropPopCKOffset          = "POP_CK_OFFSET"
	PropFirstPopTime         = "1ST_POP_TIME"
	PropShardingKey          = "__SHARDINGKEY"
	PropForwardQueueID       = "PROPERTY_FORWARD_QUEUE_ID"
	PropRedirect             = "REDIRECT"
	PropInnerMultiDispatch   = "INNER_MULTI_DISPATCH"
	PropInnerMultiOffset     = "INNER_MULTI_QUEUE_OFFSET"
	PropTraceContext         = "TRACE_CONTEXT"
	PropBornHost             = "__BORNHOST"
	PropBornTimestamp        = "BORN_TIMESTAMP"
	PropDLQOriginTopic       = "DLQ_ORIGIN_TOPIC"
	PropDLQOriginMessageID   = "DLQ_ORIGIN_MESSAGE_ID"
	PropCRC32                = "__CRC32#"
)

// MsgTypeReply is the message type of the answer to a request.
const MsgTypeReply = "reply"

// PropTransientPrefix begins the names of properties that are not stored.
const PropTransientPrefix = "__RMQ.TRANSIENT."

// IsReservedProperty tells whether a name is the system's, so that users may
// not set it: what 5.3 refuses.
func IsReservedProperty(name string) bool {
	switch name {
	case PropKeys, PropTags, PropWait, PropDelay, PropRetryTopic, PropRealTopic, PropRealQueueID, PropTranMsg, PropProducerGroup,
		PropMinOffset, PropMaxOffset, PropBuyerID, PropOriginMessageID, PropTransferFlag, PropCorrectionFlag, PropMQ2Flag,
		PropReconsumeTime, PropMsgRegion, PropTraceOn, PropUniqKey, PropMaxReconsumeTimes, PropConsumeStartTime,
		PropPopCK, PropPopCKOffset, PropFirstPopTime, PropExtendUniqInfo, PropInstanceID, PropCorrelationID, PropReplyToClient,
		PropTTL, PropArriveTime, PropPushReplyTime, PropCluster, PropMsgType, PropInnerMultiOffset,
		PropTimerDelayMs, PropTimerDelaySec, PropTimerDeliverMs, PropTimerEnqueueMs, PropTimerDequeueMs, PropTimerRollTimes,
		PropTimerOutMs, PropTimerDelUniqKey, PropTimerDelayLevel, PropBornHost, PropBornTimestamp, PropDLQOriginTopic,
		PropDLQOriginMessageID, PropCRC32, PropDupInfo, PropTranPreparedOffset:
		return true
	}
	return false
}
