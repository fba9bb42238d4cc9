package namesrv

import (
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Routes.
//
//	105 GET_ROUTEINFO_BY_TOPIC
//	    reads    topic, acceptStandardJsonOnly, __ZONE_MODE, __ZONE_NAME
//	    answers  0 with TopicRouteData, 17 if no live broker has the topic
//	             (Apache's remark), 1 if the topic is missing
//	    form     standard JSON for clients from 4.9.4 on or who ask for it,
//	             fastjson's dialect else; zone-filtered answers always the latter
//
// Deviations: brokers come in the order of their names. filterServerTable is
// always empty (filter servers are gone since 4.3). Static topics
// (topicQueueMappingByBroker) are not known. A slave is never presented as
// master (supportActingMaster is off, as by default). There is no waiting
// time after the start (needWaitForService is off, as by default).

// strictJSONSince is the client version from which Apache answers standard
// JSON: MQVersion V4_9_4.
const strictJSONSince = 401

func (s *Server) getRoute(r *remoting.Request) {
	var q wire.RouteRequest
	f := r.Frame()
	if !read(r, &q) {
		return
	}
	var body []byte
	if zone := f.Text("__ZONE_NAME"); zone != "" && f.Bool("__ZONE_MODE") {
		body = s.tables.zoneRoute(q.Topic, zone)
	} else {
		body = s.tables.route(q.Topic, q.StandardJSONOnly || f.Version >= strictJSONSince)
	}
	if body == nil {
		r.Reply(wire.RespTopicNotExist, "No topic route info in name server for the topic: "+q.Topic+
			"\nSee https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details.", nil, nil)
		return
	}
	r.Reply(wire.RespSuccess, "", nil, body)
}
