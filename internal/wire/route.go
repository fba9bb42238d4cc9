package wire

import (
	"maps"
	"slices"
)

// QueueData says how many queues of a topic one broker has.
type QueueData struct {
	BrokerName  string
	ReadQueues  int32
	WriteQueues int32
	Perm        int32 // Perm... bits
	SysFlag     int32 // of the topic
}

// BrokerData is one group of brokers of one name: a master and its slaves.
type BrokerData struct {
	Cluster            string
	BrokerName         string
	Addrs              map[int64]string // by broker id; 0 is the master
	EnableActingMaster bool             // 5.x
	ZoneName           string           // 5.x
}

// RouteData is where a topic lives: the body of GET_ROUTEINFO_BY_TOPIC (105).
type RouteData struct {
	OrderTopicConf string // broker:queues;... of an order topic, usually empty
	Queues         []QueueData
	Brokers        []BrokerData
}

// AppendJSON appends the native form, with bare numbers as keys.
func (d *RouteData) AppendJSON(dst []byte) []byte {
	w := jsonWriter{b: dst}
	w.route(d)
	return w.b
}

// AppendStrictJSON appends the form for peers of version 401 and later and for
// those that ask for it: keys quoted, ASCII only.
func (d *RouteData) AppendStrictJSON(dst []byte) []byte {
	w := jsonWriter{b: dst, strict: true}
	w.route(d)
	return w.b
}

func (w *jsonWriter) route(d *RouteData) {
	w.open('{')
	w.key("brokerDatas")
	w.open('[')
	for i := range d.Brokers {
		w.sep()
		w.broker(&d.Brokers[i])
	}
	w.close(']')
	w.empty("filterServerTable")
	w.optText("orderTopicConf", d.OrderTopicConf)
	w.key("queueDatas")
	w.open('[')
	for i := range d.Queues {
		q := &d.Queues[i]
		w.item('{')
		w.text("brokerName", q.BrokerName)
		w.int("perm", int64(q.Perm))
		w.int("readQueueNums", int64(q.ReadQueues))
		w.int("topicSysFlag", int64(q.SysFlag))
		w.int("writeQueueNums", int64(q.WriteQueues))
		w.close('}')
	}
	w.close(']')
	w.close('}')
}

func (w *jsonWriter) broker(d *BrokerData) {
	w.open('{')
	w.addrs(d.Addrs)
	w.text("brokerName", d.BrokerName)
	w.text("cluster", d.Cluster)
	w.bool("enableActingMaster", d.EnableActingMaster)
	w.optText("zoneName", d.ZoneName)
	w.close('}')
}

func (w *jsonWriter) addrs(m map[int64]string) {
	w.key("brokerAddrs")
	w.open('{')
	for _, id := range sortedKeys(m) {
		w.intKey(id)
		w.quote(m[id])
	}
	w.close('}')
}

// DecodeRouteData reads either form.
func DecodeRouteData(b []byte) (RouteData, error) {
	r := jsonReader{b: b}
	var d RouteData
	r.object(func(k jsonKey) {
		switch string(k.text) {
		case "orderTopicConf":
			d.OrderTopicConf = r.text()
		case "queueDatas":
			r.array(func() { d.Queues = append(d.Queues, r.queueData()) })
		case "brokerDatas":
			r.array(func() { d.Brokers = append(d.Brokers, r.broker()) })
		}
	})
	return d, r.finish("route")
}

func (r *jsonReader) queueData() (d QueueData) {
	r.object(func(k jsonKey) {
		switch string(k.text) {
		case "brokerName":
			d.BrokerName = r.text()
		case "readQueueNums":
			d.ReadQueues = r.int32()
		case "writeQueueNums":
			d.WriteQueues = r.int32()
		case "perm":
			d.Perm = r.int32()
		case "topicSysFlag", "topicSynFlag": // the latter before 4.9
			d.SysFlag = r.int32()
		}
	})
	return d
}

func (r *jsonReader) broker() (d BrokerData) {
	r.object(func(k jsonKey) {
		switch string(k.text) {
		case "cluster":
			d.Cluster = r.text()
		case "brokerName":
			d.BrokerName = r.text()
		case "brokerAddrs":
			d.Addrs = r.addrs()
		case "enableActingMaster":
			d.EnableActingMaster = r.bool()
		case "zoneName":
			d.ZoneName = r.text()
		}
	})
	return d
}

func (r *jsonReader) addrs() map[int64]string {
	m := map[int64]string{}
	r.object(func(k jsonKey) {
		id := k.int64(r)
		m[id] = r.text()
	})
	return m
}

// Clone is a copy that shares nothing with d.
func (d *RouteData) Clone() RouteData {
	c := RouteData{OrderTopicConf: d.OrderTopicConf, Queues: slices.Clone(d.Queues), Brokers: slices.Clone(d.Brokers)}
	for i := range c.Brokers {
		c.Brokers[i].Addrs = maps.Clone(d.Brokers[i].Addrs)
	}
	return c
}

// ClusterInfo is the body of GET_BROKER_CLUSTER_INFO (106).
type ClusterInfo struct {
	Brokers  map[string]BrokerData // by broker name
	Clusters map[string][]string   // broker names of each cluster
}

// AppendJSON appends the native form, the only one this body has.
func (d *ClusterInfo) AppendJSON(dst []byte) []byte {
	w := jsonWriter{b: dst}
	w.open('{')
	w.key("brokerAddrTable")
	w.open('{')
	for _, name := range sortedKeys(d.Brokers) {
		w.textKey(name)
		b := d.Brokers[name]
		w.broker(&b)
	}
	w.close('}')
	w.key("clusterAddrTable")
	w.open('{')
	for _, name := range sortedKeys(d.Clusters) {
		w.textKey(name)
		w.open('[')
		for _, b := range d.Clusters[name] {
			w.sep()
			w.quote(b)
		}
		w.close(']')
	}
	w.close('}')
	w.close('}')
	return w.b
}

// DecodeClusterInfo reads the body.
func DecodeClusterInfo(b []byte) (ClusterInfo, error) {
	r := jsonReader{b: b}
	d := ClusterInfo{Brokers: map[string]BrokerData{}, Clusters: map[string][]string{}}
	r.object(func(k jsonKey) {
		switch string(k.text) {
		case "brokerAddrTable":
			r.object(func(k jsonKey) {
				name := string(k.text)
				d.Brokers[name] = r.broker()
			})
		case "clusterAddrTable":
			r.object(func(k jsonKey) {
				name := string(k.text)
				d.Clusters[name] = r.texts()
			})
		}
	})
	return d, r.finish("cluster info")
}

// MemberGroup is the body of GET_BROKER_MEMBER_GROUP (901).
type MemberGroup struct {
	Cluster    string
	BrokerName string
	Addrs      map[int64]string // by broker id
}

// AppendJSON appends the native form.
func (d *MemberGroup) AppendJSON(dst []byte) []byte {
	w := jsonWriter{b: dst}
	w.open('{')
	w.key("brokerMemberGroup")
	w.open('{')
	w.addrs(d.Addrs)
	w.text("brokerName", d.BrokerName)
	w.text("cluster", d.Cluster)
	w.close('}')
	w.close('}')
	return w.b
}

// DecodeMemberGroup reads the body.
func DecodeMemberGroup(b []byte) (MemberGroup, error) {
	r := jsonReader{b: b}
	var d MemberGroup
	r.object(func(k jsonKey) {
		if string(k.text) == "brokerMemberGroup" {
			x := r.broker()
			d = MemberGroup{Cluster: x.Cluster, BrokerName: x.BrokerName, Addrs: x.Addrs}
		}
	})
	return d, r.finish("member group")
}
