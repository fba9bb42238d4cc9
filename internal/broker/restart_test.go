package broker

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

func TestEverythingIsThereAfterARestart(t *testing.T) {
	for name, fs := range map[string]mfile.FS{"memory": mfile.NewMemory(), "disk": mfile.OS()} {
		t.Run(name, func(t *testing.T) {
			cfg := testConfig()
			cfg.Store.FS, cfg.Store.Dir = fs, t.TempDir()
			cfg.Store.CommitLogFileSize, cfg.Store.ConsumeQueueFileSize = 1<<20, 20_000
			b := startWith(t, cfg)
			p := dial(t, b)
			require.NoError(t, b.CreateTopic(t.Context(), "T", 4))
			g := wire.NewSubscriptionGroup("CG")
			g.RetryMaxTimes = 3
			require.NoError(t, b.PutGroup(g))
			p.send(b, "T", 1, "survives")
			p.must(wire.ReqUpdateConsumerOffset, &wire.UpdateOffsetRequest{Group: "CG", Topic: "T", QueueID: 1, Offset: 1}, nil)
			require.NoError(t, b.Close(t.Context()))
			require.NoError(t, b.Close(t.Context()), "a second time is nothing new")

			b = startWith(t, cfg)
			topic, ok := b.Topic("T")
			require.True(t, ok)
			require.EqualValues(t, 4, topic.WriteQueues)
			group, ok := b.Group("CG")
			require.True(t, ok)
			require.EqualValues(t, 3, group.RetryMaxTimes)
			off, ok := b.Offset("CG", "T", 1)
			require.True(t, ok)
			require.EqualValues(t, 1, off)
			f := dial(t, b).must(wire.ReqPullMessage, pullHeaderOf("CG", "T", 1, 0), nil)
			require.Equal(t, []string{"survives"}, bodies(t, f))
		})
	}
}

func TestWhatAKillLeaves(t *testing.T) {
	c := clock.NewManual(testStart)
	cfg := testConfig(withClock(c))
	b := startWith(t, cfg)
	p := dial(t, b)
	require.NoError(t, b.CreateTopic(t.Context(), "T", 4)) // returns saved
	p.send(b, "T", 0, "survives")
	commit := func(off int64) {
		p.must(wire.ReqUpdateConsumerOffset, &wire.UpdateOffsetRequest{Group: "TOOLS_CONSUMER", Topic: "T", Offset: off}, nil)
	}
	commit(1)
	advanceUntil(t, c, 5*time.Second, func() bool {
		_, err := b.saver.files.ReadFile("consumerOffset.json")
		return err == nil
	})
	commit(2)
	b.Kill()
	require.NoError(t, b.Close(t.Context()), "closing what was killed does nothing")

	b = startWith(t, cfg)
	_, ok := b.Topic("T")
	require.True(t, ok)
	off, ok := b.Offset("TOOLS_CONSUMER", "T", 0)
	require.True(t, ok)
	require.EqualValues(t, 1, off, "what was committed after the last save is lost")
	f := dial(t, b).must(wire.ReqPullMessage, pullHeaderOf("CG", "T", 0, 0), nil)
	require.Equal(t, []string{"survives"}, bodies(t, f))
}

func TestStartRefusesWhatCannotWork(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"name":       func(c *Config) { c.Name = "no spaces" },
		"cluster":    func(c *Config) { c.Cluster = "a/b" },
		"id":         func(c *Config) { c.ID = 1 },
		"address":    func(c *Config) { c.Listen = "" },
		"permission": func(c *Config) { c.Permission = 7 },
		"advertised": func(c *Config) { c.AdvertiseAddr = "nohost" },
		"store":      func(c *Config) { c.Store.Dir = "" },
		"taken":      func(c *Config) { c.Listen = "256.0.0.1:1" },
	} {
		_, err := Start(context.Background(), testConfig(change))
		require.Error(t, err, name)
	}
}

func TestStartRefusesADamagedTable(t *testing.T) {
	cfg := testConfig()
	require.NoError(t, cfg.Store.FS.MkdirAll("/store/config"))
	require.NoError(t, cfg.Store.FS.WriteFile("/store/config/topics.json", []byte("{")))
	_, err := Start(context.Background(), cfg)
	require.ErrorContains(t, err, "topics.json")
}

func TestStartEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Start(ctx, testConfig(func(c *Config) { c.Listener = nil }))
	require.ErrorIs(t, err, context.Canceled)
}

func TestAdvertisedAddress(t *testing.T) {
	b := startBroker(t, func(c *Config) { c.Listen, c.AdvertiseAddr = "0.0.0.0:0", "192.0.2.7:10911" })
	require.Equal(t, "192.0.2.7:10911", b.Addr())
	require.Equal(t, "192.0.2.7:10911", b.host.String())
	require.Equal(t, "192.0.2.7:10912", b.haAddr)
	b = startBroker(t, func(c *Config) { c.Name, c.Listen = "any", "0.0.0.0:0" })
	require.False(t, b.host.Addr().IsUnspecified())
}

func TestBrokerConf(t *testing.T) {
	c := DefaultConfig()
	unknown, err := c.Load(`
# a comment
brokerClusterName = Cluster-X
brokerName=broker-x
brokerIP1=192.0.2.1
listenPort=20911
bindAddress=0.0.0.0
namesrvAddr=a:9876;b:9876
autoCreateTopicEnable=false
defaultTopicQueueNums=4
registerNameServerPeriod=10000
startAcceptSendRequestTimeStamp=1000
serverChannelMaxIdleTimeSeconds=60
warmMapedFileEnable=true
redeleteHangedFileInterval=60000
`)
	require.NoError(t, err)
	require.Equal(t, []string{"warmMapedFileEnable", "redeleteHangedFileInterval"}, unknown)
	require.Equal(t, "Cluster-X", c.Cluster)
	require.Equal(t, "0.0.0.0:20911", c.Listen)
	require.Equal(t, "192.0.2.1:20911", c.AdvertiseAddr)
	require.Equal(t, []string{"a:9876", "b:9876"}, c.NameServers)
	require.False(t, c.AutoCreateTopic)
	require.EqualValues(t, 4, c.DefaultTopicQueues)
	require.Equal(t, 10*time.Second, c.RegisterEvery)
	require.Equal(t, time.UnixMilli(1000), c.AcceptSendFrom)
	require.Equal(t, time.Minute, c.IdleTimeout)

	full, err := c.withDefaults()
	require.NoError(t, err)
	for _, s := range settings() { // what is listed can be read back
		again := DefaultConfig()
		known, err := again.Set(s.key, s.get(&full))
		require.NoError(t, err, s.key)
		require.True(t, known)
	}
	for _, bad := range []string{"nonsense", "listenPort=99999", "defaultTopicQueueNums=many", "defaultTopicQueueNums=99999999999"} {
		_, err := c.Load(bad)
		require.ErrorContains(t, err, "line 1", bad)
	}
}

func FuzzConfigLoad(f *testing.F) {
	for _, s := range []string{"", "a=b", "listenPort=1\nbrokerIP1=::1", "#x\n=\n", "brokerName=\x00", "bindAddress=[::\nlistenPort=9"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, conf string) {
		c := DefaultConfig()
		if _, err := c.Load(conf); err == nil {
			c.properties()
		}
	})
}
