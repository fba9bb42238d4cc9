package testbroker_test

import (
	"context"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
	"github.com/gorocketmq/rocketmq/testbroker"
)

var errTimeout = os.ErrDeadlineExceeded

// route asks a name server for a topic as a client does.
func route(t *testing.T, addr, topic string) *wire.Frame {
	t.Helper()
	pool := remoting.NewPool(remoting.PoolConfig{})
	defer pool.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	f, err := pool.Call(ctx, addr, &wire.Command{Code: wire.ReqGetRouteInfoByTopic, Ext: &wire.RouteRequest{Topic: topic}})
	require.NoError(t, err)
	return f
}

// routeCodes is what each name server answers.
func routeCodes(t *testing.T, c *testbroker.Cluster, topic string) []int32 {
	t.Helper()
	var codes []int32
	for _, addr := range c.NameServers() {
		codes = append(codes, route(t, addr, topic).Code)
	}
	return codes
}

// hostOf is where the first broker of topic T listens.
func hostOf(t *testing.T, c *testbroker.Cluster) (host, port string) {
	t.Helper()
	d, err := wire.DecodeRouteData(route(t, c.NameServers()[0], "T").Body)
	require.NoError(t, err)
	host, port, err = net.SplitHostPort(d.Brokers[0].Addrs[0])
	require.NoError(t, err)
	return host, port
}
