package namesrv

import (
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Changes of the topic table from outside. All answer 0 and last until the
// broker's next registration that reports a change.
//
//	205 WIPE_WRITE_PERM_OF_BROKER   reads brokerName; answers wipeTopicCount
//	327 ADD_WRITE_PERM_OF_BROKER    reads brokerName; answers addTopicCount;
//	                                makes the permission exactly read and write
//	216 DELETE_TOPIC_IN_NAMESRV     reads topic, clusterName (empty: all)
//	217 REGISTER_TOPIC_IN_NAMESRV   reads topic; body TopicRouteData, of which
//	                                the queues of known brokers count
//
// Deviation: 217 skips an unknown broker and takes the rest, where Apache
// stops at the first unknown one.

func (s *Server) wipeWritePerm(r *remoting.Request) {
	var q wire.WipeWritePermRequest
	if !read(r, &q) {
		return
	}
	n := s.tables.wipeWrite(q.BrokerName)
	s.log.Info("write permission wiped", "broker", q.BrokerName, "topics", n)
	r.Reply(wire.RespSuccess, "", &wire.WipeWritePermResponse{WipeTopicCount: int32(n)}, nil)
}

func (s *Server) addWritePerm(r *remoting.Request) {
	var q wire.WipeWritePermRequest
	if !read(r, &q) {
		return
	}
	n := s.tables.addWrite(q.BrokerName)
	s.log.Info("write permission added", "broker", q.BrokerName, "topics", n)
	r.Reply(wire.RespSuccess, "", &wire.AddWritePermResponse{AddTopicCount: int32(n)}, nil)
}

func (s *Server) deleteTopic(r *remoting.Request) {
	var q wire.DeleteTopicInNamesrvRequest
	if !read(r, &q) {
		return
	}
	s.tables.deleteTopic(q.Topic, q.ClusterName)
	r.Reply(wire.RespSuccess, "", nil, nil)
}

func (s *Server) registerTopic(r *remoting.Request) {
	var q wire.TopicRequest
	if !read(r, &q) {
		return
	}
	d, err := wire.DecodeRouteData(r.Frame().Body)
	if err != nil {
		r.Reply(wire.RespSystemError, "body is not a topic route: "+err.Error(), nil, nil)
		return
	}
	if n := s.tables.addQueues(q.Topic, d.Queues); n > 0 {
		s.log.Warn("queues of unknown brokers left out", "topic", q.Topic, "brokers", n)
	}
	r.Reply(wire.RespSuccess, "", nil, nil)
}
