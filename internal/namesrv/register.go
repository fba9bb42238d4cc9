package namesrv

import (
	"hash/crc32"
	"time"

	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Brokers coming, living and going.
//
//	103 REGISTER_BROKER
//	    reads    brokerName, brokerAddr, clusterName, haServerAddr, brokerId,
//	             heartbeatTimeoutMillis, enableActingMaster, compressed,
//	             bodyCrc32, __ZONE_NAME; body RegisterBrokerBody, plain or
//	             compressed, or none
//	    answers  0 with haServerAddr and masterAddr for a slave whose master
//	             lives, body KVTable of ORDER_TOPIC_CONFIG if there is one;
//	             1 for a wrong checksum, an unreadable body, an unknown broker
//	             with a single topic
//	104 UNREGISTER_BROKER   brokerName, brokerAddr, clusterName, brokerId: 0
//	322 QUERY_DATA_VERSION  the same and a DataVersion: 0 with changed, body the
//	             version known here, if any; also a sign of life
//	904 BROKER_HEARTBEAT    clusterName, brokerAddr: 0; a sign of life
//
// Deviations: 104 takes effect before it is answered (5.x queues it, 4.9 does
// not). The body's first byte tells whether it is compressed, because 5.x
// brokers mislabel it. A full report over a new connection replaces all that
// the broker reported over an old one, also if the end of that is noticed only
// afterwards. A refused single-topic registration leaves no trace.
// Bodies of brokers before 3.0.11 are not read. Nobody is told of a new lowest
// broker id (notifyMinBrokerIdChanged is off, as by default), and topics are
// not removed by their absence (deleteTopicWithBrokerRegistration likewise).

func (s *Server) registerBroker(r *remoting.Request) {
	var q wire.RegisterBrokerRequest
	if !read(r, &q) {
		return
	}
	raw := r.Frame().Body
	if q.BodyCRC32 != 0 && int32(crc32.ChecksumIEEE(raw)&0x7FFFFFFF) != q.BodyCRC32 {
		r.Reply(wire.RespSystemError, "crc32 not match", nil, nil)
		return
	}
	var body wire.RegisterBrokerBody
	if len(raw) > 0 {
		var err error
		if body, err = wire.DecodeRegisterBrokerBody(raw); err != nil {
			r.Reply(wire.RespSystemError, "body of the registration of "+q.BrokerName+" is not readable: "+err.Error(), nil, nil)
			return
		}
	}
	reg := &registration{
		cluster: q.ClusterName, name: q.BrokerName, addr: q.BrokerAddr, haAddr: q.HAServerAddr,
		zone: q.ZoneName, id: q.BrokerID, acting: q.EnableActingMaster,
		timeout: s.cfg.Expiry, version: body.Version, topics: body.Topics,
		conn: r.Conn(), now: s.cfg.Clock.Now(),
	}
	if q.HeartbeatTimeoutMillis > 0 {
		reg.timeout = time.Duration(q.HeartbeatTimeoutMillis) * time.Millisecond
	}
	res, err := s.tables.register(reg)
	if err != nil {
		s.log.Warn("broker refused", "broker", q.BrokerName, "addr", q.BrokerAddr, "error", err)
		r.Reply(wire.RespSystemError, err.Error(), nil, nil)
		return
	}
	if res.joined {
		s.log.Info("broker joined", "broker", q.BrokerName, "id", q.BrokerID, "addr", q.BrokerAddr)
	}
	var order []byte
	if s.set.Load().returnOrder {
		if t := s.kv.list(orderNamespace); len(t) > 0 {
			order = (&wire.KVTable{Table: t}).AppendJSON(nil)
		}
	}
	r.Reply(wire.RespSuccess, "", &wire.RegisterBrokerResponse{HAServerAddr: res.masterHA, MasterAddr: res.master}, order)
}

func (s *Server) unregisterBroker(r *remoting.Request) {
	var q wire.UnregisterBrokerRequest
	if !read(r, &q) {
		return
	}
	s.tables.unregister(liveKey{q.ClusterName, q.BrokerAddr}, q.BrokerName)
	s.log.Info("broker left", "broker", q.BrokerName, "addr", q.BrokerAddr)
	r.Reply(wire.RespSuccess, "", nil, nil)
}

func (s *Server) queryDataVersion(r *remoting.Request) {
	var q wire.UnregisterBrokerRequest // 322 has the same fields
	if !read(r, &q) {
		return
	}
	theirs, err := wire.DecodeDataVersion(r.Frame().Body)
	if err != nil {
		r.Reply(wire.RespSystemError, "body is not a data version: "+err.Error(), nil, nil)
		return
	}
	key := liveKey{q.ClusterName, q.BrokerAddr}
	ours, known := s.tables.dataVersion(key)
	s.tables.touch(key, s.cfg.Clock.Now())
	var body []byte
	if known {
		body = ours.AppendJSON(nil)
	}
	r.Reply(wire.RespSuccess, "", &wire.DataVersionResponse{Changed: !known || ours != theirs}, body)
}

func (s *Server) brokerHeartbeat(r *remoting.Request) {
	var q wire.BrokerHeartbeatRequest
	if !read(r, &q) {
		return
	}
	s.tables.touch(liveKey{q.ClusterName, q.BrokerAddr}, s.cfg.Clock.Now())
	r.Reply(wire.RespSuccess, "", nil, nil)
}
