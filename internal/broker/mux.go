package broker

import (
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// served is one request code, where its handler runs, and the handler.
type served struct {
	code  int32
	class remoting.Class
	serve remoting.Handler
}

// routes is what the broker serves; docs/COMPAT.md lists it. Requests on the
// reader must not wait for anything; those that read cold data, write files or
// build large answers are for the workers. Codes that are not listed are
// answered as Apache does: 3.
func (b *Broker) routes() []served {
	reader, worker := remoting.OnReader(), remoting.OnWorkers(b.workers)
	return []served{
		{wire.ReqSendMessage, reader, b.handleSend},
		{wire.ReqSendMessageV2, reader, b.handleSend},
		{wire.ReqSendBatchMessage, reader, b.handleSend},
		{wire.ReqSendReplyMessage, reader, b.handleReply},
		{wire.ReqSendReplyMessageV2, reader, b.handleReply},
		{wire.ReqConsumerSendMsgBack, worker, b.handleSendBack},
		{wire.ReqEndTransaction, worker, b.handleEndTransaction},
		{wire.ReqResumeCheckHalfMessage, worker, b.handleResumeCheck},
		{wire.ReqRecallMessage, reader, b.handleRecall},
		{wire.ReqPullMessage, reader, b.handlePull},
		{wire.ReqLitePullMessage, reader, b.handlePull},

		{wire.ReqPopMessage, reader, b.pop.HandlePop},
		{wire.ReqAckMessage, reader, b.pop.HandleAck},
		{wire.ReqBatchAckMessage, reader, b.pop.HandleBatchAck},
		{wire.ReqChangeMessageInvisibletime, reader, b.pop.HandleChange},
		{wire.ReqPeekMessage, worker, b.pop.HandlePeek},
		{wire.ReqNotification, reader, b.pop.HandleNotification},
		{wire.ReqPollingInfo, reader, b.pop.HandlePollingInfo},
		{wire.ReqQueryAssignment, worker, b.handleQueryAssignment},
		{wire.ReqSetMessageRequestMode, worker, b.handleSetRequestMode},
		{wire.ReqGetAllMessageRequestMode, worker, b.handleRequestModes},

		{wire.ReqQueryConsumerOffset, reader, b.handleQueryOffset},
		{wire.ReqUpdateConsumerOffset, reader, b.handleUpdateOffset},
		{wire.ReqGetAllDelayOffset, worker, b.handleDelayOffsets},
		{wire.ReqGetTimerCheckPoint, worker, b.handleTimerCheckpoint},
		{wire.ReqGetTimerMetrics, worker, b.handleTimerMetrics},
		{wire.ReqSearchOffsetByTimestamp, worker, b.handleSearchOffset},
		{wire.ReqGetMaxOffset, reader, b.handleMaxOffset},
		{wire.ReqGetMinOffset, reader, b.handleMinOffset},
		{wire.ReqGetEarliestMsgStoretime, worker, b.handleEarliestTime},

		{wire.ReqHeartBeat, reader, b.handleHeartbeat},
		{wire.ReqUnregisterClient, reader, b.handleUnregister},
		{wire.ReqGetConsumerListByGroup, reader, b.handleConsumerList},
		{wire.ReqCheckClientConfig, reader, b.handleCheckClient},
		{wire.ReqLockBatchMQ, reader, b.handleLock},
		{wire.ReqUnlockBatchMQ, reader, b.handleUnlock},

		{wire.ReqUpdateAndCreateTopic, worker, b.handleCreateTopic},
		{wire.ReqUpdateAndCreateTopicList, worker, b.handleCreateTopics},
		{wire.ReqGetAllTopicConfig, worker, b.handleAllTopics},
		{wire.ReqGetTopicStatsInfo, worker, b.handleTopicStats},
		{wire.ReqDeleteTopicInBroker, worker, b.handleDeleteTopic},
		{wire.ReqGetSystemTopicListFromBroker, worker, b.handleSystemTopics},
		{wire.ReqGetTopicConfig, worker, b.handleTopicConfig},

		{wire.ReqUpdateAndCreateSubscriptiongroup, worker, b.handlePutGroup},
		{wire.ReqGetAllSubscriptiongroupConfig, worker, b.handleAllGroups},
		{wire.ReqGetConsumerConnectionList, worker, b.handleConsumerConnections},
		{wire.ReqGetProducerConnectionList, worker, b.handleProducerConnections},
		{wire.ReqDeleteSubscriptiongroup, worker, b.handleDeleteGroup},
		{wire.ReqGetConsumeStats, worker, b.handleConsumeStats},
		{wire.ReqQueryTopicConsumeByWho, worker, b.handleTopicGroups},
		{wire.ReqGetSubscriptiongroupConfig, worker, b.handleGroupConfig},

		{wire.ReqInvokeBrokerToResetOffset, worker, b.handleResetOffset},
		{wire.ReqInvokeBrokerToGetConsumerStatus, worker, b.handleConsumerStatus},

		{wire.ReqCleanExpiredConsumeQueue, worker, b.handleCleanQueues},
		{wire.ReqCleanUnusedTopic, worker, b.handleCleanTopics},
		{wire.ReqDeleteExpiredCommitLog, worker, b.handleCleanLog},

		{wire.ReqGetBrokerConfig, worker, b.handleBrokerConfig},
		{wire.ReqGetBrokerRuntimeInfo, worker, b.handleRuntimeInfo},
		{wire.ReqQueryMessage, worker, b.handleQuery},
		{wire.ReqViewMessageByID, worker, b.handleView},
		{wire.ReqGetConsumerRunningInfo, worker, b.handleRunningInfo},
		{wire.ReqConsumeMessageDirectly, worker, b.handleConsumeDirectly},
	}
}

func (b *Broker) mux() *remoting.Mux {
	m := &remoting.Mux{}
	for _, r := range b.routes() {
		m.Handle(r.code, r.class, r.serve)
	}
	return m
}

// malformed answers a request that cannot be understood. It is false, and does
// nothing, without an error. Code 1 is what Apache's broker arrives at, by way
// of an exception.
func malformed(r *remoting.Request, err error) bool {
	if err == nil {
		return false
	}
	r.Reply(wire.RespSystemError, err.Error(), nil, nil)
	return true
}
