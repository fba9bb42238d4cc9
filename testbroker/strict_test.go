package testbroker_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
	"github.com/gorocketmq/rocketmq/producer"
	"github.com/gorocketmq/rocketmq/selector"
	"github.com/gorocketmq/rocketmq/testbroker"
)

// strictly runs f with a strict cluster and returns what it finds.
func strictly(t *testing.T, f func(tb testbroker.TB, c *testbroker.Cluster), opts ...testbroker.Option) []string {
	t.Helper()
	fake := &fakeTB{T: t}
	c := testbroker.New(fake, append(opts, testbroker.Strict(), testbroker.Topic("T", 1))...)
	f(fake, c)
	fake.end()
	require.Empty(t, fake.fatal)
	return fake.errors
}

func TestStrictIsContent(t *testing.T) {
	synctest.Test(t, testStrictIsContent)
}

func testStrictIsContent(t *testing.T) {
	require.Empty(t, strictly(t, func(tb testbroker.TB, c *testbroker.Cluster) {
		got := newBodies()
		stopA := consume(t, c.Client(tb, rocketmq.WithInstanceName("a")), "G", "T", got)
		stopB := consume(t, c.Client(tb, rocketmq.WithInstanceName("b")), "G", "T", got)
		p, err := producer.New(c.Client(tb), patient())
		require.NoError(t, err)
		send(t, p, "T", "m", 10)
		got.await(t, 10)
		c.Restart("broker-a", 0)
		send(t, p, "T", "n", 10)
		got.await(t, 20)
		stopB()
		stopA()
		require.NoError(t, p.Close(t.Context()))
	}, testbroker.Virtual()))
}

func TestStrictMissingTopic(t *testing.T) {
	typo := func(tb testbroker.TB, c *testbroker.Cluster) {
		p, err := producer.New(c.Client(tb))
		require.NoError(t, err)
		_, _ = one(t, p, "Typo")
		require.NoError(t, p.Close(t.Context()))
	}
	require.Equal(t, []string{`testbroker: strict: there is no topic "Typo"; create it with the option Topic, or is it misspelt?`}, strictly(t, typo))
	require.Empty(t, strictly(t, typo, testbroker.AutoCreate(true)))
}

func TestStrictUnknownRequest(t *testing.T) {
	found := strictly(t, func(_ testbroker.TB, c *testbroker.Cluster) {
		pool := remoting.NewPool(remoting.PoolConfig{})
		defer pool.Close()
		f, err := pool.Call(t.Context(), c.NameServers()[0], &wire.Command{Code: 4711})
		require.NoError(t, err)
		require.Equal(t, wire.RespRequestCodeNotSupported, f.Code)
	})
	require.Equal(t, []string{"testbroker: strict: namesrv-0 does not know the request code 4711"}, found)
}

func TestStrictRolesThatAreNotClosed(t *testing.T) {
	found := strictly(t, func(tb testbroker.TB, c *testbroker.Cluster) {
		got := newBodies()
		cl := c.Client(tb)
		_ = consume(t, cl, "G", "T", got)
		p, err := producer.New(cl, producer.WithGroup("PG"))
		require.NoError(t, err)
		send(t, p, "T", "m", 1)
		got.await(t, 1)
	})
	require.Contains(t, found[0], "strict: the consumer G was not closed")
}

func TestStrictLeakedClient(t *testing.T) {
	synctest.Test(t, testStrictLeakedClient)
}

func testStrictLeakedClient(t *testing.T) {
	var cl *rocketmq.Client
	found := strictly(t, func(_ testbroker.TB, c *testbroker.Cluster) {
		var err error
		cl, err = rocketmq.NewClient(c.ClientOptions()...)
		require.NoError(t, err)
		require.NoError(t, cl.Ping(t.Context()))
	}, testbroker.Virtual())
	require.NoError(t, cl.Close(t.Context()))
	require.Len(t, found, 1)
	require.Regexp(t, `strict: the client at 10\.255\.0\.\d+:\d+ is still connected; close it before the cluster`, found[0])
}

func TestStrictUnequalSubscriptions(t *testing.T) {
	found := strictly(t, func(tb testbroker.TB, c *testbroker.Cluster) {
		run := func(name, tag string) (stop func()) {
			con, err := consumer.NewPush(c.Client(tb, rocketmq.WithInstanceName(name)), "G",
				consumer.Subscribe("T", selector.Tags(tag), consumer.Each(func(context.Context, *rocketmq.MessageView) error { return nil })))
			require.NoError(t, err)
			ended := make(chan error, 1)
			go func() { ended <- con.Run(context.Background()) }()
			<-con.Ready()
			return func() {
				require.NoError(t, con.Close(context.Background()))
				require.NoError(t, <-ended)
			}
		}
		stopA, stopB := run("a", "red"), run("b", "blue")
		stopA()
		stopB()
	})
	require.Equal(t, []string{"testbroker: strict: members of the group G subscribe to different things: {T: blue} and {T: red}"}, found)
}

func TestStrictSameClientID(t *testing.T) {
	found := strictly(t, func(_ testbroker.TB, c *testbroker.Cluster) {
		host, port := hostOf(t, c)
		hb := wire.Heartbeat{ClientID: "twin", Producers: []string{"P"}}
		var pools []*remoting.Pool
		for range 2 {
			pool := remoting.NewPool(remoting.PoolConfig{})
			defer pool.Close()
			pools = append(pools, pool)
		}
		for range 2 {
			for _, pool := range pools {
				_, err := pool.Call(t.Context(), host+":"+port, &wire.Command{Code: wire.ReqHeartBeat, Body: hb.AppendJSON(nil)})
				require.NoError(t, err)
			}
		}
	})
	require.Equal(t, []string{"testbroker: strict: two clients have the id twin; give one of them another instance name"}, found)
}

// A cluster of Start has its Close say it, once.
func TestStrictWithoutATest(t *testing.T) {
	c, err := testbroker.Start(t.Context(), testbroker.Strict())
	require.NoError(t, err)
	require.Equal(t, []int32{wire.RespTopicNotExist}, routeCodes(t, c, "Typo"))
	require.ErrorContains(t, c.Close(context.Background()), `there is no topic "Typo"`)
	require.NoError(t, c.Close(context.Background()))
}
