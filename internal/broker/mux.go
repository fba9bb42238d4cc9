package broker

import (
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// mux lists what the broker serves. Requests on the reader must not wait for
// anything; those that read cold data, write files or build large answers are
// for the workers. Codes that are not listed are answered as Apache does: 3.
func (b *Broker) mux() *remoting.Mux {
	m := &remoting.Mux{}
	reader, worker := remoting.OnReader(), remoting.OnWorkers(b.workers)

	m.Handle(wire.ReqSendMessage, reader, b.handleSend)
	m.Handle(wire.ReqSendMessageV2, reader, b.handleSend)
	m.Handle(wire.ReqSendBatchMessage, reader, b.handleSend)
	m.Handle(wire.ReqPullMessage, reader, b.handlePull)
	m.Handle(wire.ReqLitePullMessage, reader, b.handlePull)

	m.Handle(wire.ReqQueryConsumerOffset, reader, b.handleQueryOffset)
	m.Handle(wire.ReqUpdateConsumerOffset, reader, b.handleUpdateOffset)
	m.Handle(wire.ReqSearchOffsetByTimestamp, worker, b.handleSearchOffset)
	m.Handle(wire.ReqGetMaxOffset, reader, b.handleMaxOffset)
	m.Handle(wire.ReqGetMinOffset, reader, b.handleMinOffset)
	m.Handle(wire.ReqGetEarliestMsgStoretime, worker, b.handleEarliestTime)

	m.Handle(wire.ReqHeartBeat, reader, b.handleHeartbeat)
	m.Handle(wire.ReqUnregisterClient, reader, b.handleUnregister)
	m.Handle(wire.ReqGetConsumerListByGroup, reader, b.handleConsumerList)
	m.Handle(wire.ReqCheckClientConfig, reader, b.handleCheckClient)
	m.Handle(wire.ReqLockBatchMQ, reader, b.handleLock)
	m.Handle(wire.ReqUnlockBatchMQ, reader, b.handleUnlock)

	m.Handle(wire.ReqUpdateAndCreateTopic, worker, b.handleCreateTopic)
	m.Handle(wire.ReqUpdateAndCreateTopicList, worker, b.handleCreateTopics)
	m.Handle(wire.ReqGetAllTopicConfig, worker, b.handleAllTopics)
	m.Handle(wire.ReqGetTopicStatsInfo, worker, b.handleTopicStats)
	m.Handle(wire.ReqDeleteTopicInBroker, worker, b.handleDeleteTopic)
	m.Handle(wire.ReqGetSystemTopicListFromBroker, worker, b.handleSystemTopics)
	m.Handle(wire.ReqGetTopicConfig, worker, b.handleTopicConfig)

	m.Handle(wire.ReqUpdateAndCreateSubscriptiongroup, worker, b.handlePutGroup)
	m.Handle(wire.ReqGetAllSubscriptiongroupConfig, worker, b.handleAllGroups)
	m.Handle(wire.ReqGetConsumerConnectionList, worker, b.handleConsumerConnections)
	m.Handle(wire.ReqGetProducerConnectionList, worker, b.handleProducerConnections)
	m.Handle(wire.ReqDeleteSubscriptiongroup, worker, b.handleDeleteGroup)
	m.Handle(wire.ReqGetConsumeStats, worker, b.handleConsumeStats)
	m.Handle(wire.ReqQueryTopicConsumeByWho, worker, b.handleTopicGroups)
	m.Handle(wire.ReqGetSubscriptiongroupConfig, worker, b.handleGroupConfig)

	m.Handle(wire.ReqInvokeBrokerToResetOffset, worker, b.handleResetOffset)

	m.Handle(wire.ReqGetBrokerConfig, worker, b.handleBrokerConfig)
	m.Handle(wire.ReqGetBrokerRuntimeInfo, worker, b.handleRuntimeInfo)
	m.Handle(wire.ReqViewMessageByID, worker, b.handleView)
	m.Handle(wire.ReqGetConsumerRunningInfo, worker, b.handleRunningInfo)
	m.Handle(wire.ReqConsumeMessageDirectly, worker, b.handleConsumeDirectly)
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
