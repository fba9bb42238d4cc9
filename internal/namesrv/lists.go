package namesrv

import (
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// What there is: clusters, brokers, topics. All answer 0.
//
//	106 GET_BROKER_CLUSTER_INFO             ClusterInfo, always in fastjson's dialect
//	206 GET_ALL_TOPIC_LIST_FROM_NAMESERVER  TopicList
//	224 GET_TOPICS_BY_CLUSTER               reads cluster; TopicList
//	304 GET_SYSTEM_TOPIC_LIST_FROM_NS       names of clusters and brokers, one broker's address
//	311 GET_UNIT_TOPIC_LIST                 topics of units (bit 1 of topicSysFlag)
//	312 GET_HAS_UNIT_SUB_TOPIC_LIST         topics subscribed by units (bit 2)
//	313 GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST  bit 2 without bit 1
//	901 GET_BROKER_MEMBER_GROUP             reads clusterName, brokerName; the
//	                                        addresses, empty if unknown
//
// Deviations: lists are sorted. 901 has no remark; 5.3 forgets to clear one.

// Bits of topicSysFlag: TopicSysFlag of Apache.
const (
	sysFlagUnit    = 1
	sysFlagUnitSub = 2
)

func (s *Server) clusterInfo(r *remoting.Request) {
	r.Reply(wire.RespSuccess, "", nil, s.tables.clusterInfo().AppendJSON(nil))
}

func (s *Server) allTopics(r *remoting.Request) {
	replyTopics(r, s.tables.topicNames(func(map[string]wire.QueueData) bool { return true }), "")
}

func (s *Server) topicsByCluster(r *remoting.Request) {
	var q wire.ClusterRequest
	if read(r, &q) {
		replyTopics(r, s.tables.clusterTopics(q.Cluster), "")
	}
}

func (s *Server) systemTopics(r *remoting.Request) {
	names, addr := s.tables.systemTopics()
	replyTopics(r, names, addr)
}

// topicsByFlag lists the topics whose flag has the given value under mask, as
// any one of their brokers says.
func (s *Server) topicsByFlag(mask, value int32) remoting.Handler {
	return func(r *remoting.Request) {
		replyTopics(r, s.tables.topicNames(func(queues map[string]wire.QueueData) bool {
			for _, q := range queues {
				return q.SysFlag&mask == value
			}
			return false
		}), "")
	}
}

func (s *Server) memberGroup(r *remoting.Request) {
	var q wire.MemberGroupRequest
	if !read(r, &q) {
		return
	}
	b := s.tables.member(q.ClusterName, q.BrokerName)
	g := wire.MemberGroup{Cluster: b.Cluster, BrokerName: b.BrokerName, Addrs: b.Addrs}
	r.Reply(wire.RespSuccess, "", nil, g.AppendJSON(nil))
}

func replyTopics(r *remoting.Request, topics []string, addr string) {
	r.Reply(wire.RespSuccess, "", nil, (&wire.TopicList{Topics: topics, BrokerAddr: addr}).AppendJSON(nil))
}
