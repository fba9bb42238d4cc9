package broker

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

func TestPullStatuses(t *testing.T) {
	b := startBroker(t)
	p := dial(t, b)
	require.NoError(t, b.CreateTopic(t.Context(), "T", 2))
	for _, body := range []string{"one", "two", "three"} {
		p.send(b, "T", 0, body, "TAGS", "TagA")
	}
	for name, c := range map[string]struct {
		queue  int32
		offset int64
		tags   string
		code   int32
		remark string
		next   int64
	}{
		"found":              {0, 0, "*", wire.RespSuccess, "FOUND", 3},
		"found from middle":  {0, 1, "TagA", wire.RespSuccess, "FOUND", 3},
		"nothing yet":        {0, 3, "*", wire.RespPullNotFound, "OFFSET_OVERFLOW_ONE", 3},
		"beyond":             {0, 1000, "*", wire.RespPullOffsetMoved, "OFFSET_OVERFLOW_BADLY", 3},
		"filtered":           {0, 0, "TagNone", wire.RespPullRetryImmediately, "NO_MATCHED_MESSAGE", 3},
		"empty queue":        {1, 0, "*", wire.RespPullNotFound, "", 0},
		"empty queue, not 0": {1, 5, "*", wire.RespPullOffsetMoved, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			h := pullHeaderOf("CG", "T", c.queue, c.offset)
			h.Subscription = []byte(c.tags)
			f := p.call(wire.ReqPullMessage, h, nil)
			require.Equal(t, c.code, f.Code, "%s", f.Remark)
			if c.remark != "" {
				require.Equal(t, c.remark, string(f.Remark))
			}
			require.Equal(t, c.next, pullResponse(t, f).NextOffset)
			for _, key := range []string{"suggestWhichBrokerId", "minOffset", "maxOffset", "topicSysFlag", "groupSysFlag"} {
				_, ok := f.Lookup(key)
				require.True(t, ok, key)
			}
		})
	}
	f := p.must(wire.ReqLitePullMessage, pullHeaderOf("CG", "T", 0, 0), nil)
	require.Equal(t, []string{"one", "two", "three"}, bodies(t, f))
}

func TestPullRefusals(t *testing.T) {
	b := startBroker(t)
	p := dial(t, b)
	require.NoError(t, b.CreateTopic(t.Context(), "T", 2))
	closed := wire.NewTopicConfig("Closed")
	closed.Perm = wire.PermWrite
	require.NoError(t, b.PutTopics(t.Context(), closed))
	off := wire.NewSubscriptionGroup("Off")
	off.ConsumeEnable = false
	require.NoError(t, b.PutGroup(off))
	p.heartbeat("Online", "id", 10, "Other")

	change := func(f func(h *wire.PullRequest)) *wire.PullRequest {
		h := pullHeaderOf("CG", "T", 0, 0)
		f(h)
		return h
	}
	for name, c := range map[string]struct {
		header    *wire.PullRequest
		code      int32
		forbidden int64
	}{
		"no topic":         {change(func(h *wire.PullRequest) { h.Topic = []byte("None") }), wire.RespTopicNotExist, 0},
		"queue":            {change(func(h *wire.PullRequest) { h.QueueID = 2 }), wire.RespInvalidParameter, 0},
		"negative queue":   {change(func(h *wire.PullRequest) { h.QueueID = -1 }), wire.RespInvalidParameter, 0},
		"write-only topic": {change(func(h *wire.PullRequest) { h.Topic = []byte("Closed") }), wire.RespNoPermission, 3},
		"group off":        {change(func(h *wire.PullRequest) { h.Group = []byte("Off") }), wire.RespNoPermission, 2},
		"bad group name":   {change(func(h *wire.PullRequest) { h.Group = []byte("no spaces") }), wire.RespSubscriptionGroupNotExist, 0},
		"bad tags":         {change(func(h *wire.PullRequest) { h.Subscription = []byte("||") }), wire.RespSubscriptionParseFailed, 0},
		"sql":              {change(func(h *wire.PullRequest) { h.ExpressionType, h.Subscription = []byte("SQL92"), []byte("a = 1") }), wire.RespSystemError, 0},
		"bad sql":          {change(func(h *wire.PullRequest) { h.ExpressionType = []byte("SQL92") }), wire.RespSubscriptionParseFailed, 0},
		"offline":          {change(func(h *wire.PullRequest) { h.SysFlag = 0 }), wire.RespSubscriptionNotExist, 0},
		"not subscribed":   {change(func(h *wire.PullRequest) { h.SysFlag, h.Group = 0, []byte("Online") }), wire.RespSubscriptionNotExist, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := p.call(wire.ReqPullMessage, c.header, nil)
			require.Equal(t, c.code, f.Code, "%s", f.Remark)
			n, err := f.Int64("forbiddenType")
			require.NoError(t, err)
			require.Equal(t, c.forbidden, n)
		})
	}
	require.EqualValues(t, wire.RespSystemError, p.call(wire.ReqPullMessage, wire.ExtFields{"topic": "T"}, nil).Code)
}

func TestPullByHeartbeatSubscription(t *testing.T) {
	b := startBroker(t)
	p := dial(t, b)
	p.send(b, "T", 0, "a", "TAGS", "TagA")
	p.send(b, "T", 0, "x", "TAGS", "TagX")
	s := wire.TagSubscription("T", "TagA")
	s.Version = 10
	hb := wire.Heartbeat{ClientID: "id", Consumers: []wire.ConsumerData{{
		Group: "CG", ConsumeType: wire.ConsumePassively, Model: wire.Broadcasting, Subscriptions: []wire.Subscription{s},
	}}}
	p.must(wire.ReqHeartBeat, nil, hb.AppendJSON(nil))

	h := pullHeaderOf("CG", "T", 0, 0)
	h.SysFlag, h.SubVersion = 0, 10
	require.Equal(t, []string{"a"}, bodies(t, p.must(wire.ReqPullMessage, h, nil)))
	h.SysFlag = wire.PullClassFilter
	require.Equal(t, []string{"a", "x"}, bodies(t, p.must(wire.ReqPullMessage, h, nil)))
	h.SysFlag, h.SubVersion = 0, 11
	require.EqualValues(t, wire.RespSubscriptionNotLatest, p.call(wire.ReqPullMessage, h, nil).Code)

	g := wire.NewSubscriptionGroup("CG")
	g.ConsumeBroadcastEnable = false
	require.NoError(t, b.PutGroup(g))
	f := p.call(wire.ReqPullMessage, h, nil)
	require.EqualValues(t, wire.RespNoPermission, f.Code)
	require.Equal(t, "4", f.Text("forbiddenType"))
}

func TestPullCommits(t *testing.T) {
	b := startBroker(t)
	p := dial(t, b)
	p.send(b, "T", 0, "x")
	h := pullHeaderOf("CG", "T", 0, 1)
	h.CommitOffset = 1
	p.call(wire.ReqPullMessage, h, nil)
	_, ok := b.Offset("CG", "T", 0)
	require.False(t, ok, "without the flag it is not stored")
	h.SysFlag |= wire.PullCommitOffset
	p.call(wire.ReqPullMessage, h, nil)
	off, ok := b.Offset("CG", "T", 0)
	require.True(t, ok)
	require.EqualValues(t, 1, off)
}

func TestPullIsToldOfAReset(t *testing.T) {
	b := startBroker(t)
	p := dial(t, b)
	p.send(b, "T", 0, "one")
	p.send(b, "T", 0, "two")
	b.offsets.Reset([]byte("CG"), []byte("T"), 0, 1)
	f := p.call(wire.ReqPullMessage, holding(pullHeaderOf("CG", "T", 0, 2)), nil)
	require.EqualValues(t, wire.RespPullOffsetMoved, f.Code)
	require.Equal(t, "OFFSET_RESET", string(f.Remark))
	require.Equal(t, wire.PullResponse{NextOffset: 1, MaxOffset: 2}, pullResponse(t, f))
	require.Equal(t, []string{"two"}, bodies(t, p.must(wire.ReqPullMessage, pullHeaderOf("CG", "T", 0, 1), nil)))
}

func TestDrainedBrokerIsNotRead(t *testing.T) {
	b := startBroker(t, func(c *Config) { c.Permission = wire.PermWrite })
	f := dial(t, b).call(wire.ReqPullMessage, pullHeaderOf("CG", "T", 0, 0), nil)
	require.EqualValues(t, wire.RespNoPermission, f.Code)
	require.Equal(t, "1", f.Text("forbiddenType"))
}

// Where to read next: from the replica only if it may be read, the records are
// further back than the master's memory reaches, and the group does not say
// otherwise.
func TestSuggestedBroker(t *testing.T) {
	for name, test := range map[string]struct {
		slaveRead bool
		memory    int64 // bytes
		near, far int64 // the group's brokerId and whichBrokerWhenConsumeSlowly
		offset    int64
		want      int64
	}{
		"far back":                       {true, 1, 0, 1, 0, 1},
		"far back, the group's choice":   {true, 1, 0, 2, 0, 2},
		"far back, it may not be read":   {false, 1, 0, 1, 0, 0},
		"in memory":                      {true, 1 << 20, 0, 1, 0, 0},
		"in memory, the group's choice":  {true, 1 << 20, 3, 1, 0, 3},
		"in memory, it may not be read":  {false, 1 << 20, 3, 1, 0, 0},
		"nothing there":                  {true, 1, 0, 1, 2, 0},
		"outside":                        {true, 1, 3, 1, 9, 3},
		"the last one is near, though 1": {true, 1 << 10, 0, 1, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := startBroker(t, func(c *Config) { c.SlaveRead, c.Store.MemoryBytes = test.slaveRead, test.memory })
			p := dial(t, b)
			p.send(b, "T", 0, "one")
			p.send(b, "T", 0, "two")
			g := wire.NewSubscriptionGroup("CG")
			g.BrokerID, g.WhichBrokerWhenConsumeSlowly = test.near, test.far
			require.NoError(t, b.PutGroup(g))
			f := p.call(wire.ReqPullMessage, pullHeaderOf("CG", "T", 0, test.offset), nil)
			require.Equal(t, test.want, pullResponse(t, f).SuggestBrokerID)
		})
	}
}
