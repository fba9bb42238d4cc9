package namesrv

import (
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Key-value configuration.
//
//	100 PUT_KV_CONFIG            reads namespace, key, value; 0
//	101 GET_KV_CONFIG            reads namespace, key; 0 with value, 22
//	102 DELETE_KV_CONFIG         reads namespace, key; 0, also if absent
//	219 GET_KVLIST_BY_NAMESPACE  reads namespace; 0 with KVTable, 22
//
// Deviation: 100 and 102 are answered when the file is written, and with 1 if
// it cannot be; Apache logs that and answers 0.

func (s *Server) putKV(r *remoting.Request) {
	var q wire.KVRequest
	if read(r, &q) {
		s.kv.put(q.Namespace, q.Key, q.Value, s.kvDone(r.Replier(), q.Namespace))
	}
}

func (s *Server) deleteKV(r *remoting.Request) {
	var q wire.KVRequest
	if read(r, &q) {
		s.kv.remove(q.Namespace, q.Key, s.kvDone(r.Replier(), q.Namespace))
	}
}

// kvDone ends a change: routes carry the order namespace, so they must follow
// before the answer goes out.
func (s *Server) kvDone(to remoting.Replier, namespace string) func(error) {
	return func(err error) {
		if namespace == orderNamespace {
			s.applyOrder()
		}
		if err != nil {
			s.log.Error("key-value configuration not stored", "path", s.cfg.ConfigPath, "error", err)
			to.Reply(wire.RespSystemError, "in effect, but not stored: "+err.Error(), nil, nil)
			return
		}
		to.Reply(wire.RespSuccess, "", nil, nil)
	}
}

func (s *Server) getKV(r *remoting.Request) {
	var q wire.KVRequest
	if !read(r, &q) {
		return
	}
	v, ok := s.kv.get(q.Namespace, q.Key)
	if !ok {
		r.Reply(wire.RespQueryNotFound, "No config item, Namespace: "+q.Namespace+" Key: "+q.Key, nil, nil)
		return
	}
	r.Reply(wire.RespSuccess, "", &wire.KVResponse{Value: v, Has: true}, nil)
}

func (s *Server) listKV(r *remoting.Request) {
	var q wire.KVRequest
	if !read(r, &q) {
		return
	}
	t := s.kv.list(q.Namespace)
	if t == nil {
		r.Reply(wire.RespQueryNotFound, "No config item, Namespace: "+q.Namespace, nil, nil)
		return
	}
	r.Reply(wire.RespSuccess, "", nil, (&wire.KVTable{Table: t}).AppendJSON(nil))
}
