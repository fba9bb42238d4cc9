package namesrv

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

func TestUnitTopicLists(t *testing.T) {
	c := dial(t, start(t, Config{}))
	topics := topicSet("plain", "unit", "sub", "both")
	for name, flag := range map[string]int32{"unit": sysFlagUnit, "sub": sysFlagUnitSub, "both": sysFlagUnit | sysFlagUnitSub} {
		x := topics[name]
		x.SysFlag = flag
		topics[name] = x
	}
	body := (&wire.RegisterBrokerBody{Topics: topics}).AppendJSON(nil)
	require.Equal(t, wire.RespSuccess, c.ask(wire.ReqRegisterBroker, 479, brokerHeader("a", 0, "h:1"), body).Code)
	for code, want := range map[int32]string{
		wire.ReqGetUnitTopicList:             `{"topicList":["both","unit"]}`,
		wire.ReqGetHasUnitSubTopicList:       `{"topicList":["both","sub"]}`,
		wire.ReqGetHasUnitSubUnunitTopicList: `{"topicList":["sub"]}`,
	} {
		require.Equal(t, want, string(c.ask(code, 479, nil, nil).Body), wire.RequestName(code))
	}
}

func TestListsOfAnEmptyServer(t *testing.T) {
	c := dial(t, start(t, Config{}))
	for code, want := range map[int32]string{
		wire.ReqGetAllTopicListFromNameserver: `{"topicList":[]}`,
		wire.ReqGetSystemTopicListFromNS:      `{"topicList":[]}`,
		wire.ReqGetBrokerClusterInfo:          `{"brokerAddrTable":{},"clusterAddrTable":{}}`,
	} {
		f := c.ask(code, 479, nil, nil)
		require.Equal(t, wire.RespSuccess, f.Code)
		require.Equal(t, want, string(f.Body), wire.RequestName(code))
	}
	f := c.ask(wire.ReqGetBrokerMemberGroup, 479, &wire.MemberGroupRequest{ClusterName: "c", BrokerName: "x"}, nil)
	require.Equal(t, `{"brokerMemberGroup":{"brokerAddrs":{},"brokerName":"x","cluster":"c"}}`, string(f.Body))
}

func TestRegisterAndDeleteTopicFromOutside(t *testing.T) {
	c := dial(t, start(t, Config{}))
	c.registerOn("a", 0, "h:1", 1, "T", "U")
	d := wire.RouteData{Queues: []wire.QueueData{{BrokerName: "a", ReadQueues: 3, WriteQueues: 3, Perm: 6}}}
	f := c.ask(wire.ReqRegisterTopicInNameServer, 479, &wire.TopicRequest{Topic: "N"}, d.AppendJSON(nil))
	require.Equal(t, wire.RespSuccess, f.Code, "%s", f.Remark)
	require.Equal(t, wire.RespSuccess, c.routeCode("N"))
	f = c.ask(wire.ReqRegisterTopicInNameServer, 479, &wire.TopicRequest{Topic: "N"}, []byte("{"))
	require.Equal(t, wire.RespSystemError, f.Code)
	c.ask(wire.ReqDeleteTopicInNameServer, 479, &wire.DeleteTopicInNamesrvRequest{Topic: "N"}, nil)
	require.Equal(t, wire.RespTopicNotExist, c.routeCode("N"))
}
