package namesrv

import (
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// mux maps codes to handlers. All run on the connection's reader: each is a
// look into memory. What must wait for the disk (codes 100 and 102) is
// answered later by the goroutine that writes.
func (s *Server) mux() *remoting.Mux {
	m := &remoting.Mux{}
	for code, h := range map[int32]remoting.Handler{
		wire.ReqPutKVConfig:                   s.putKV,
		wire.ReqGetKVConfig:                   s.getKV,
		wire.ReqDeleteKVConfig:                s.deleteKV,
		wire.ReqGetKvlistByNamespace:          s.listKV,
		wire.ReqRegisterBroker:                s.registerBroker,
		wire.ReqUnregisterBroker:              s.unregisterBroker,
		wire.ReqQueryDataVersion:              s.queryDataVersion,
		wire.ReqBrokerHeartbeat:               s.brokerHeartbeat,
		wire.ReqGetRouteInfoByTopic:           s.getRoute,
		wire.ReqGetBrokerClusterInfo:          s.clusterInfo,
		wire.ReqGetBrokerMemberGroup:          s.memberGroup,
		wire.ReqGetAllTopicListFromNameserver: s.allTopics,
		wire.ReqGetTopicsByCluster:            s.topicsByCluster,
		wire.ReqGetSystemTopicListFromNS:      s.systemTopics,
		wire.ReqGetUnitTopicList:              s.topicsByFlag(sysFlagUnit, sysFlagUnit),
		wire.ReqGetHasUnitSubTopicList:        s.topicsByFlag(sysFlagUnitSub, sysFlagUnitSub),
		wire.ReqGetHasUnitSubUnunitTopicList:  s.topicsByFlag(sysFlagUnit|sysFlagUnitSub, sysFlagUnitSub),
		wire.ReqWipeWritePermOfBroker:         s.wipeWritePerm,
		wire.ReqAddWritePermOfBroker:          s.addWritePerm,
		wire.ReqDeleteTopicInNameServer:       s.deleteTopic,
		wire.ReqRegisterTopicInNameServer:     s.registerTopic,
		wire.ReqUpdateNameServerConfig:        s.updateConfig,
		wire.ReqGetNameServerConfig:           s.getConfig,
	} {
		m.Handle(code, remoting.OnReader(), h)
	}
	return m
}
