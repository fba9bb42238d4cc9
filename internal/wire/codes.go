package wire

// Request codes, as RequestCode of Apache RocketMQ numbers them. They are part of
// the protocol; codes that nothing here sends or serves are left out.
const (
	ReqSendMessage                      int32 = 10     // SEND_MESSAGE
	ReqPullMessage                      int32 = 11     // PULL_MESSAGE
	ReqQueryMessage                     int32 = 12     // QUERY_MESSAGE
	ReqQueryConsumerOffset              int32 = 14     // QUERY_CONSUMER_OFFSET
	ReqUpdateConsumerOffset             int32 = 15     // UPDATE_CONSUMER_OFFSET
	ReqUpdateAndCreateTopic             int32 = 17     // UPDATE_AND_CREATE_TOPIC
	ReqUpdateAndCreateTopicList         int32 = 18     // UPDATE_AND_CREATE_TOPIC_LIST
	ReqGetAllTopicConfig                int32 = 21     // GET_ALL_TOPIC_CONFIG
	ReqUpdateBrokerConfig               int32 = 25     // UPDATE_BROKER_CONFIG
	ReqGetBrokerConfig                  int32 = 26     // GET_BROKER_CONFIG
	ReqGetBrokerRuntimeInfo             int32 = 28     // GET_BROKER_RUNTIME_INFO
	ReqSearchOffsetByTimestamp          int32 = 29     // SEARCH_OFFSET_BY_TIMESTAMP
	ReqGetMaxOffset                     int32 = 30     // GET_MAX_OFFSET
	ReqGetMinOffset                     int32 = 31     // GET_MIN_OFFSET
	ReqGetEarliestMsgStoretime          int32 = 32     // GET_EARLIEST_MSG_STORETIME
	ReqViewMessageByID                  int32 = 33     // VIEW_MESSAGE_BY_ID
	ReqHeartBeat                        int32 = 34     // HEART_BEAT
	ReqUnregisterClient                 int32 = 35     // UNREGISTER_CLIENT
	ReqConsumerSendMsgBack              int32 = 36     // CONSUMER_SEND_MSG_BACK
	ReqEndTransaction                   int32 = 37     // END_TRANSACTION
	ReqGetConsumerListByGroup           int32 = 38     // GET_CONSUMER_LIST_BY_GROUP
	ReqCheckTransactionState            int32 = 39     // CHECK_TRANSACTION_STATE
	ReqNotifyConsumerIdsChanged         int32 = 40     // NOTIFY_CONSUMER_IDS_CHANGED
	ReqLockBatchMQ                      int32 = 41     // LOCK_BATCH_MQ
	ReqUnlockBatchMQ                    int32 = 42     // UNLOCK_BATCH_MQ
	ReqGetAllDelayOffset                int32 = 45     // GET_ALL_DELAY_OFFSET
	ReqCheckClientConfig                int32 = 46     // CHECK_CLIENT_CONFIG
	ReqGetTimerCheckPoint               int32 = 60     // GET_TIMER_CHECK_POINT
	ReqGetTimerMetrics                  int32 = 61     // GET_TIMER_METRICS
	ReqPutKVConfig                      int32 = 100    // PUT_KV_CONFIG
	ReqGetKVConfig                      int32 = 101    // GET_KV_CONFIG
	ReqDeleteKVConfig                   int32 = 102    // DELETE_KV_CONFIG
	ReqRegisterBroker                   int32 = 103    // REGISTER_BROKER
	ReqUnregisterBroker                 int32 = 104    // UNREGISTER_BROKER
	ReqGetRouteInfoByTopic              int32 = 105    // GET_ROUTEINFO_BY_TOPIC
	ReqGetBrokerClusterInfo             int32 = 106    // GET_BROKER_CLUSTER_INFO
	ReqUpdateAndCreateSubscriptiongroup int32 = 200    // UPDATE_AND_CREATE_SUBSCRIPTIONGROUP
	ReqGetAllSubscriptiongroupConfig    int32 = 201    // GET_ALL_SUBSCRIPTIONGROUP_CONFIG
	ReqGetTopicStatsInfo                int32 = 202    // GET_TOPIC_STATS_INFO
	ReqGetConsumerConnectionList        int32 = 203    // GET_CONSUMER_CONNECTION_LIST
	ReqGetProducerConnectionList        int32 = 204    // GET_PRODUCER_CONNECTION_LIST
	ReqWipeWritePermOfBroker            int32 = 205    // WIPE_WRITE_PERM_OF_BROKER
	ReqGetAllTopicListFromNameserver    int32 = 206    // GET_ALL_TOPIC_LIST_FROM_NAMESERVER
	ReqDeleteSubscriptiongroup          int32 = 207    // DELETE_SUBSCRIPTIONGROUP
	ReqGetConsumeStats                  int32 = 208    // GET_CONSUME_STATS
	ReqDeleteTopicInBroker              int32 = 215    // DELETE_TOPIC_IN_BROKER
	ReqDeleteTopicInNameServer          int32 = 216    // DELETE_TOPIC_IN_NAMESRV
	ReqRegisterTopicInNameServer        int32 = 217    // REGISTER_TOPIC_IN_NAMESRV
	ReqGetKvlistByNamespace             int32 = 219    // GET_KVLIST_BY_NAMESPACE
	ReqResetConsumerClientOffset        int32 = 220    // RESET_CONSUMER_CLIENT_OFFSET
	ReqGetConsumerStatusFromClient      int32 = 221    // GET_CONSUMER_STATUS_FROM_CLIENT
	ReqInvokeBrokerToResetOffset        int32 = 222    // INVOKE_BROKER_TO_RESET_OFFSET
	ReqInvokeBrokerToGetConsumerStatus  int32 = 223    // INVOKE_BROKER_TO_GET_CONSUMER_STATUS
	ReqGetTopicsByCluster               int32 = 224    // GET_TOPICS_BY_CLUSTER
	ReqQueryTopicConsumeByWho           int32 = 300    // QUERY_TOPIC_CONSUME_BY_WHO
	ReqQueryConsumeTimeSpan             int32 = 303    // QUERY_CONSUME_TIME_SPAN
	ReqGetSystemTopicListFromNS         int32 = 304    // GET_SYSTEM_TOPIC_LIST_FROM_NS
	ReqGetSystemTopicListFromBroker     int32 = 305    // GET_SYSTEM_TOPIC_LIST_FROM_BROKER
	ReqCleanExpiredConsumeQueue         int32 = 306    // CLEAN_EXPIRED_CONSUMEQUEUE
	ReqGetConsumerRunningInfo           int32 = 307    // GET_CONSUMER_RUNNING_INFO
	ReqConsumeMessageDirectly           int32 = 309    // CONSUME_MESSAGE_DIRECTLY
	ReqSendMessageV2                    int32 = 310    // SEND_MESSAGE_V2
	ReqGetUnitTopicList                 int32 = 311    // GET_UNIT_TOPIC_LIST
	ReqGetHasUnitSubTopicList           int32 = 312    // GET_HAS_UNIT_SUB_TOPIC_LIST
	ReqGetHasUnitSubUnunitTopicList     int32 = 313    // GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST
	ReqCleanUnusedTopic                 int32 = 316    // CLEAN_UNUSED_TOPIC
	ReqUpdateNameServerConfig           int32 = 318    // UPDATE_NAMESRV_CONFIG
	ReqGetNameServerConfig              int32 = 319    // GET_NAMESRV_CONFIG
	ReqSendBatchMessage                 int32 = 320    // SEND_BATCH_MESSAGE
	ReqQueryDataVersion                 int32 = 322    // QUERY_DATA_VERSION
	ReqResumeCheckHalfMessage           int32 = 323    // RESUME_CHECK_HALF_MESSAGE
	ReqSendReplyMessage                 int32 = 324    // SEND_REPLY_MESSAGE
	ReqSendReplyMessageV2               int32 = 325    // SEND_REPLY_MESSAGE_V2
	ReqPushReplyMessageToClient         int32 = 326    // PUSH_REPLY_MESSAGE_TO_CLIENT
	ReqAddWritePermOfBroker             int32 = 327    // ADD_WRITE_PERM_OF_BROKER
	ReqGetAllProducerInfo               int32 = 328    // GET_ALL_PRODUCER_INFO
	ReqDeleteExpiredCommitLog           int32 = 329    // DELETE_EXPIRED_COMMITLOG
	ReqGetTopicConfig                   int32 = 351    // GET_TOPIC_CONFIG
	ReqGetSubscriptiongroupConfig       int32 = 352    // GET_SUBSCRIPTIONGROUP_CONFIG
	ReqLitePullMessage                  int32 = 361    // LITE_PULL_MESSAGE
	ReqRecallMessage                    int32 = 370    // RECALL_MESSAGE
	ReqQueryAssignment                  int32 = 400    // QUERY_ASSIGNMENT
	ReqSetMessageRequestMode            int32 = 401    // SET_MESSAGE_REQUEST_MODE
	ReqGetAllMessageRequestMode         int32 = 402    // GET_ALL_MESSAGE_REQUEST_MODE
	ReqGetBrokerMemberGroup             int32 = 901    // GET_BROKER_MEMBER_GROUP
	ReqBrokerHeartbeat                  int32 = 904    // BROKER_HEARTBEAT
	ReqPopMessage                       int32 = 200050 // POP_MESSAGE
	ReqAckMessage                       int32 = 200051 // ACK_MESSAGE
	ReqPeekMessage                      int32 = 200052 // PEEK_MESSAGE
	ReqChangeMessageInvisibletime       int32 = 200053 // CHANGE_MESSAGE_INVISIBLETIME
	ReqNotification                     int32 = 200054 // NOTIFICATION
	ReqPollingInfo                      int32 = 200055 // POLLING_INFO
	ReqBatchAckMessage                  int32 = 200151 // BATCH_ACK_MESSAGE
)

// Response codes, as ResponseCode of Apache RocketMQ numbers them.
const (
	RespSuccess                    int32 = 0    // SUCCESS
	RespSystemError                int32 = 1    // SYSTEM_ERROR
	RespSystemBusy                 int32 = 2    // SYSTEM_BUSY
	RespRequestCodeNotSupported    int32 = 3    // REQUEST_CODE_NOT_SUPPORTED
	RespTransactionFailed          int32 = 4    // TRANSACTION_FAILED
	RespFlushDiskTimeout           int32 = 10   // FLUSH_DISK_TIMEOUT
	RespSlaveNotAvailable          int32 = 11   // SLAVE_NOT_AVAILABLE
	RespFlushSlaveTimeout          int32 = 12   // FLUSH_SLAVE_TIMEOUT
	RespMessageIllegal             int32 = 13   // MESSAGE_ILLEGAL
	RespServiceNotAvailable        int32 = 14   // SERVICE_NOT_AVAILABLE
	RespVersionNotSupported        int32 = 15   // VERSION_NOT_SUPPORTED
	RespNoPermission               int32 = 16   // NO_PERMISSION
	RespTopicNotExist              int32 = 17   // TOPIC_NOT_EXIST
	RespTopicExistAlready          int32 = 18   // TOPIC_EXIST_ALREADY
	RespPullNotFound               int32 = 19   // PULL_NOT_FOUND
	RespPullRetryImmediately       int32 = 20   // PULL_RETRY_IMMEDIATELY
	RespPullOffsetMoved            int32 = 21   // PULL_OFFSET_MOVED
	RespQueryNotFound              int32 = 22   // QUERY_NOT_FOUND
	RespSubscriptionParseFailed    int32 = 23   // SUBSCRIPTION_PARSE_FAILED
	RespSubscriptionNotExist       int32 = 24   // SUBSCRIPTION_NOT_EXIST
	RespSubscriptionNotLatest      int32 = 25   // SUBSCRIPTION_NOT_LATEST
	RespSubscriptionGroupNotExist  int32 = 26   // SUBSCRIPTION_GROUP_NOT_EXIST
	RespFilterDataNotExist         int32 = 27   // FILTER_DATA_NOT_EXIST
	RespFilterDataNotLatest        int32 = 28   // FILTER_DATA_NOT_LATEST
	RespInvalidParameter           int32 = 29   // INVALID_PARAMETER
	RespTransactionShouldCommit    int32 = 200  // TRANSACTION_SHOULD_COMMIT
	RespTransactionShouldRollback  int32 = 201  // TRANSACTION_SHOULD_ROLLBACK
	RespTransactionStateUnknow     int32 = 202  // TRANSACTION_STATE_UNKNOW
	RespTransactionStateGroupWrong int32 = 203  // TRANSACTION_STATE_GROUP_WRONG
	RespNoBuyerID                  int32 = 204  // NO_BUYER_ID
	RespNotInCurrentUnit           int32 = 205  // NOT_IN_CURRENT_UNIT
	RespConsumerNotOnline          int32 = 206  // CONSUMER_NOT_ONLINE
	RespConsumeMsgTimeout          int32 = 207  // CONSUME_MSG_TIMEOUT
	RespNoMessage                  int32 = 208  // NO_MESSAGE
	RespPollingFull                int32 = 209  // POLLING_FULL
	RespPollingTimeout             int32 = 210  // POLLING_TIMEOUT
	RespBrokerNotExist             int32 = 211  // BROKER_NOT_EXIST
	RespBrokerDispatchNotComplete  int32 = 212  // BROKER_DISPATCH_NOT_COMPLETE
	RespBroadcastConsumption       int32 = 213  // BROADCAST_CONSUMPTION
	RespFlowControl                int32 = 215  // FLOW_CONTROL
	RespNotLeaderForQueue          int32 = 501  // NOT_LEADER_FOR_QUEUE
	RespIllegalOperation           int32 = 604  // ILLEGAL_OPERATION
	RespGoAway                     int32 = 1500 // GO_AWAY
	RespUserNotExist               int32 = 3001 // USER_NOT_EXIST
	RespPolicyNotExist             int32 = 3002 // POLICY_NOT_EXIST
)

// RequestName is the name Apache gives a request code, or "" for one not listed.
func RequestName(code int32) string {
	switch code {
	case ReqSendMessage:
		return "SEND_MESSAGE"
	case ReqPullMessage:
		return "PULL_MESSAGE"
	case ReqQueryMessage:
		return "QUERY_MESSAGE"
	case ReqQueryConsumerOffset:
		return "QUERY_CONSUMER_OFFSET"
	case ReqUpdateConsumerOffset:
		return "UPDATE_CONSUMER_OFFSET"
	case ReqUpdateAndCreateTopic:
		return "UPDATE_AND_CREATE_TOPIC"
	case ReqUpdateAndCreateTopicList:
		return "UPDATE_AND_CREATE_TOPIC_LIST"
	case ReqGetAllTopicConfig:
		return "GET_ALL_TOPIC_CONFIG"
	case ReqUpdateBrokerConfig:
		return "UPDATE_BROKER_CONFIG"
	case ReqGetBrokerConfig:
		return "GET_BROKER_CONFIG"
	case ReqGetBrokerRuntimeInfo:
		return "GET_BROKER_RUNTIME_INFO"
	case ReqSearchOffsetByTimestamp:
		return "SEARCH_OFFSET_BY_TIMESTAMP"
	case ReqGetMaxOffset:
		return "GET_MAX_OFFSET"
	case ReqGetMinOffset:
		return "GET_MIN_OFFSET"
	case ReqGetEarliestMsgStoretime:
		return "GET_EARLIEST_MSG_STORETIME"
	case ReqViewMessageByID:
		return "VIEW_MESSAGE_BY_ID"
	case ReqHeartBeat:
		return "HEART_BEAT"
	case ReqUnregisterClient:
		return "UNREGISTER_CLIENT"
	case ReqConsumerSendMsgBack:
		return "CONSUMER_SEND_MSG_BACK"
	case ReqEndTransaction:
		return "END_TRANSACTION"
	case ReqGetConsumerListByGroup:
		return "GET_CONSUMER_LIST_BY_GROUP"
	case ReqCheckTransactionState:
		return "CHECK_TRANSACTION_STATE"
	case ReqNotifyConsumerIdsChanged:
		return "NOTIFY_CONSUMER_IDS_CHANGED"
	case ReqLockBatchMQ:
		return "LOCK_BATCH_MQ"
	case ReqUnlockBatchMQ:
		return "UNLOCK_BATCH_MQ"
	case ReqGetAllDelayOffset:
		return "GET_ALL_DELAY_OFFSET"
	case ReqCheckClientConfig:
		return "CHECK_CLIENT_CONFIG"
	case ReqGetTimerCheckPoint:
		return "GET_TIMER_CHECK_POINT"
	case ReqGetTimerMetrics:
		return "GET_TIMER_METRICS"
	case ReqPutKVConfig:
		return "PUT_KV_CONFIG"
	case ReqGetKVConfig:
		return "GET_KV_CONFIG"
	case ReqDeleteKVConfig:
		return "DELETE_KV_CONFIG"
	case ReqRegisterBroker:
		return "REGISTER_BROKER"
	case ReqUnregisterBroker:
		return "UNREGISTER_BROKER"
	case ReqGetRouteInfoByTopic:
		return "GET_ROUTEINFO_BY_TOPIC"
	case ReqGetBrokerClusterInfo:
		return "GET_BROKER_CLUSTER_INFO"
	case ReqUpdateAndCreateSubscriptiongroup:
		return "UPDATE_AND_CREATE_SUBSCRIPTIONGROUP"
	case ReqGetAllSubscriptiongroupConfig:
		return "GET_ALL_SUBSCRIPTIONGROUP_CONFIG"
	case ReqGetTopicStatsInfo:
		return "GET_TOPIC_STATS_INFO"
	case ReqGetConsumerConnectionList:
		return "GET_CONSUMER_CONNECTION_LIST"
	case ReqGetProducerConnectionList:
		return "GET_PRODUCER_CONNECTION_LIST"
	case ReqWipeWritePermOfBroker:
		return "WIPE_WRITE_PERM_OF_BROKER"
	case ReqGetAllTopicListFromNameserver:
		return "GET_ALL_TOPIC_LIST_FROM_NAMESERVER"
	case ReqDeleteSubscriptiongroup:
		return "DELETE_SUBSCRIPTIONGROUP"
	case ReqGetConsumeStats:
		return "GET_CONSUME_STATS"
	case ReqDeleteTopicInBroker:
		return "DELETE_TOPIC_IN_BROKER"
	case ReqDeleteTopicInNameServer:
		return "DELETE_TOPIC_IN_NAMESRV"
	case ReqRegisterTopicInNameServer:
		return "REGISTER_TOPIC_IN_NAMESRV"
	case ReqGetKvlistByNamespace:
		return "GET_KVLIST_BY_NAMESPACE"
	case ReqResetConsumerClientOffset:
		return "RESET_CONSUMER_CLIENT_OFFSET"
	case ReqGetConsumerStatusFromClient:
		return "GET_CONSUMER_STATUS_FROM_CLIENT"
	case ReqInvokeBrokerToResetOffset:
		return "INVOKE_BROKER_TO_RESET_OFFSET"
	case ReqInvokeBrokerToGetConsumerStatus:
		return "INVOKE_BROKER_TO_GET_CONSUMER_STATUS"
	case ReqGetTopicsByCluster:
		return "GET_TOPICS_BY_CLUSTER"
	case ReqQueryTopicConsumeByWho:
		return "QUERY_TOPIC_CONSUME_BY_WHO"
	case ReqQueryConsumeTimeSpan:
		return "QUERY_CONSUME_TIME_SPAN"
	case ReqGetSystemTopicListFromNS:
		return "GET_SYSTEM_TOPIC_LIST_FROM_NS"
	case ReqGetSystemTopicListFromBroker:
		return "GET_SYSTEM_TOPIC_LIST_FROM_BROKER"
	case ReqCleanExpiredConsumeQueue:
		return "CLEAN_EXPIRED_CONSUMEQUEUE"
	case ReqGetConsumerRunningInfo:
		return "GET_CONSUMER_RUNNING_INFO"
	case ReqConsumeMessageDirectly:
		return "CONSUME_MESSAGE_DIRECTLY"
	case ReqSendMessageV2:
		return "SEND_MESSAGE_V2"
	case ReqGetUnitTopicList:
		return "GET_UNIT_TOPIC_LIST"
	case ReqGetHasUnitSubTopicList:
		return "GET_HAS_UNIT_SUB_TOPIC_LIST"
	case ReqGetHasUnitSubUnunitTopicList:
		return "GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST"
	case ReqCleanUnusedTopic:
		return "CLEAN_UNUSED_TOPIC"
	case ReqUpdateNameServerConfig:
		return "UPDATE_NAMESRV_CONFIG"
	case ReqGetNameServerConfig:
		return "GET_NAMESRV_CONFIG"
	case ReqSendBatchMessage:
		return "SEND_BATCH_MESSAGE"
	case ReqQueryDataVersion:
		return "QUERY_DATA_VERSION"
	case ReqSendReplyMessage:
		return "SEND_REPLY_MESSAGE"
	case ReqResumeCheckHalfMessage:
		return "RESUME_CHECK_HALF_MESSAGE"
	case ReqSendReplyMessageV2:
		return "SEND_REPLY_MESSAGE_V2"
	case ReqPushReplyMessageToClient:
		return "PUSH_REPLY_MESSAGE_TO_CLIENT"
	case ReqAddWritePermOfBroker:
		return "ADD_WRITE_PERM_OF_BROKER"
	case ReqGetAllProducerInfo:
		return "GET_ALL_PRODUCER_INFO"
	case ReqDeleteExpiredCommitLog:
		return "DELETE_EXPIRED_COMMITLOG"
	case ReqGetTopicConfig:
		return "GET_TOPIC_CONFIG"
	case ReqGetSubscriptiongroupConfig:
		return "GET_SUBSCRIPTIONGROUP_CONFIG"
	case ReqLitePullMessage:
		return "LITE_PULL_MESSAGE"
	case ReqRecallMessage:
		return "RECALL_MESSAGE"
	case ReqQueryAssignment:
		return "QUERY_ASSIGNMENT"
	case ReqSetMessageRequestMode:
		return "SET_MESSAGE_REQUEST_MODE"
	case ReqGetAllMessageRequestMode:
		return "GET_ALL_MESSAGE_REQUEST_MODE"
	case ReqGetBrokerMemberGroup:
		return "GET_BROKER_MEMBER_GROUP"
	case ReqBrokerHeartbeat:
		return "BROKER_HEARTBEAT"
	case ReqPopMessage:
		return "POP_MESSAGE"
	case ReqAckMessage:
		return "ACK_MESSAGE"
	case ReqPeekMessage:
		return "PEEK_MESSAGE"
	case ReqPollingInfo:
		return "POLLING_INFO"
	case ReqChangeMessageInvisibletime:
		return "CHANGE_MESSAGE_INVISIBLETIME"
	case ReqNotification:
		return "NOTIFICATION"
	case ReqBatchAckMessage:
		return "BATCH_ACK_MESSAGE"
	}
	return ""
}

// ResponseName is the name Apache gives a response code, or "" for one not listed.
func ResponseName(code int32) string {
	switch code {
	case RespSuccess:
		return "SUCCESS"
	case RespSystemError:
		return "SYSTEM_ERROR"
	case RespSystemBusy:
		return "SYSTEM_BUSY"
	case RespRequestCodeNotSupported:
		return "REQUEST_CODE_NOT_SUPPORTED"
	case RespTransactionFailed:
		return "TRANSACTION_FAILED"
	case RespFlushDiskTimeout:
		return "FLUSH_DISK_TIMEOUT"
	case RespSlaveNotAvailable:
		return "SLAVE_NOT_AVAILABLE"
	case RespFlushSlaveTimeout:
		return "FLUSH_SLAVE_TIMEOUT"
	case RespMessageIllegal:
		return "MESSAGE_ILLEGAL"
	case RespServiceNotAvailable:
		return "SERVICE_NOT_AVAILABLE"
	case RespVersionNotSupported:
		return "VERSION_NOT_SUPPORTED"
	case RespNoPermission:
		return "NO_PERMISSION"
	case RespTopicNotExist:
		return "TOPIC_NOT_EXIST"
	case RespTopicExistAlready:
		return "TOPIC_EXIST_ALREADY"
	case RespPullNotFound:
		return "PULL_NOT_FOUND"
	case RespPullRetryImmediately:
		return "PULL_RETRY_IMMEDIATELY"
	case RespPullOffsetMoved:
		return "PULL_OFFSET_MOVED"
	case RespQueryNotFound:
		return "QUERY_NOT_FOUND"
	case RespSubscriptionParseFailed:
		return "SUBSCRIPTION_PARSE_FAILED"
	case RespSubscriptionNotExist:
		return "SUBSCRIPTION_NOT_EXIST"
	case RespSubscriptionNotLatest:
		return "SUBSCRIPTION_NOT_LATEST"
	case RespSubscriptionGroupNotExist:
		return "SUBSCRIPTION_GROUP_NOT_EXIST"
	case RespFilterDataNotExist:
		return "FILTER_DATA_NOT_EXIST"
	case RespFilterDataNotLatest:
		return "FILTER_DATA_NOT_LATEST"
	case RespInvalidParameter:
		return "INVALID_PARAMETER"
	case RespTransactionShouldCommit:
		return "TRANSACTION_SHOULD_COMMIT"
	case RespTransactionShouldRollback:
		return "TRANSACTION_SHOULD_ROLLBACK"
	case RespTransactionStateUnknow:
		return "TRANSACTION_STATE_UNKNOW"
	case RespTransactionStateGroupWrong:
		return "TRANSACTION_STATE_GROUP_WRONG"
	case RespNoBuyerID:
		return "NO_BUYER_ID"
	case RespNotInCurrentUnit:
		return "NOT_IN_CURRENT_UNIT"
	case RespConsumerNotOnline:
		return "CONSUMER_NOT_ONLINE"
	case RespConsumeMsgTimeout:
		return "CONSUME_MSG_TIMEOUT"
	case RespNoMessage:
		return "NO_MESSAGE"
	case RespPollingFull:
		return "POLLING_FULL"
	case RespPollingTimeout:
		return "POLLING_TIMEOUT"
	case RespBrokerNotExist:
		return "BROKER_NOT_EXIST"
	case RespBrokerDispatchNotComplete:
		return "BROKER_DISPATCH_NOT_COMPLETE"
	case RespBroadcastConsumption:
		return "BROADCAST_CONSUMPTION"
	case RespFlowControl:
		return "FLOW_CONTROL"
	case RespNotLeaderForQueue:
		return "NOT_LEADER_FOR_QUEUE"
	case RespIllegalOperation:
		return "ILLEGAL_OPERATION"
	case RespGoAway:
		return "GO_AWAY"
	case RespUserNotExist:
		return "USER_NOT_EXIST"
	case RespPolicyNotExist:
		return "POLICY_NOT_EXIST"
	}
	return ""
}
