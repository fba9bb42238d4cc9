package consumer_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
	"github.com/gorocketmq/rocketmq/selector"
)

// pair is broker "b" as a master and a replica that has all that the master
// has. Both note what they are asked and let a script answer pulls.
type pair struct {
	*fake
	servers map[string]*remoting.Server // by role

	mu      sync.Mutex // guards what follows
	asked   []question
	script  func(role string, h *wire.PullRequest) *pullAnswer // nil: as the fake answers
	suggest int64                                              // added to what the fake finds
}

type question struct {
	role   string
	code   int32
	offset int64 // of a pull
	commit bool
	at     time.Time
}

type pullAnswer struct {
	code int32
	h    wire.PullResponse
	end  bool // of the connection
}

const (
	master  = "master"
	replica = "replica"
)

// newPair serves the two on listeners of the caller's.
func newPair(t *testing.T, b *fake, listen func(role string) (net.Listener, string)) *pair {
	p := &pair{fake: b, servers: map[string]*remoting.Server{}}
	addrs := map[int64]string{}
	for id, role := range []string{master, replica} {
		ln, addr := listen(role)
		srv := remoting.NewServer(remoting.ServerConfig{Config: remoting.Config{
			Handler: func(r *remoting.Request) { p.serve(role, r) }, OnClose: b.closed,
		}})
		require.NoError(t, srv.Serve(ln))
		t.Cleanup(func() { _ = srv.Close(context.Background()) })
		p.servers[role], addrs[int64(id)] = srv, addr
	}
	b.on(wire.ReqGetRouteInfoByTopic, func(r *remoting.Request) bool {
		var h wire.RouteRequest
		_ = h.DecodeExt(r.Frame())
		if h.Topic != "T" {
			return false
		}
		d := wire.RouteData{
			Queues:  []wire.QueueData{{BrokerName: "b", ReadQueues: 1, WriteQueues: 1, Perm: 6}},
			Brokers: []wire.BrokerData{{Cluster: "c", BrokerName: "b", Addrs: addrs}},
		}
		r.Reply(wire.RespSuccess, "", nil, d.AppendStrictJSON(nil))
		return true
	})
	return p
}

func (p *pair) serve(role string, r *remoting.Request) {
	q := question{role: role, code: r.Frame().Code, at: time.Now()}
	if q.code != wire.ReqPullMessage {
		p.note(q)
		p.fake.serve(r)
		return
	}
	var h wire.PullRequest
	_ = h.DecodeExt(r.Frame())
	if string(h.Topic) != "T" {
		p.fake.serve(r)
		return
	}
	q.offset, q.commit = h.Offset, h.SysFlag&wire.PullCommitOffset != 0
	p.note(q)
	p.mu.Lock()
	script, suggest := p.script, p.suggest
	p.mu.Unlock()
	if script != nil {
		if a := script(role, &h); a != nil {
			if a.end {
				r.Conn().Close(nil)
				return
			}
			r.Reply(a.code, "", &a.h, nil)
			return
		}
	}
	p.fake.mu.Lock()
	code, res, body := p.lookLocked(wire.MessageQueue{Topic: "T", Broker: "b"}, h.Offset)
	p.fake.mu.Unlock()
	if code == wire.RespSuccess {
		res.SuggestBrokerID = suggest
		r.Reply(code, "", res, body)
		return
	}
	p.fake.serve(r)
}

func (p *pair) note(q question) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, q)
}

func (p *pair) set(suggest int64, script func(role string, h *wire.PullRequest) *pullAnswer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.suggest, p.script = suggest, script
}

// pulls are where has been pulled, and from which offsets.
func (p *pair) pulls() (out []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, q := range p.asked {
		if q.code == wire.ReqPullMessage {
			out = append(out, fmt.Sprint(q.role, " ", q.offset))
		}
	}
	return out
}

// roles are those that were asked something.
func (p *pair) roles(codes ...int32) (out []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, q := range p.asked {
		if slices.Contains(codes, q.code) && !slices.Contains(out, q.role) {
			out = append(out, q.role)
		}
	}
	slices.Sort(out)
	return out
}

// Over real connections: the hint is followed to the replica and back, only
// reading goes to the replica, and when it dies the master is there.
func TestReadingFromAReplica(t *testing.T) {
	t.Parallel()
	b := newFake(t)
	b.topic("T", 1)
	listen := func(string) (net.Listener, string) {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		return ln, ln.Addr().String()
	}
	ns, addr := listen("")
	require.NoError(t, b.srv.Serve(ns))
	p := newPair(t, b, listen)
	p.set(1, func(role string, h *wire.PullRequest) *pullAnswer {
		if h.Offset == 64 && role == replica { // the records are not far back any more
			return &pullAnswer{code: wire.RespPullRetryImmediately, h: wire.PullResponse{NextOffset: 64, MaxOffset: 64}}
		}
		return nil
	})
	for i := range 64 {
		b.put("T", 0, fmt.Sprint(i))
	}
	cl, err := rocketmq.NewClient(rocketmq.WithNameServers(addr))
	require.NoError(t, err)
	defer func() { require.NoError(t, cl.Close(context.Background())) }()
	got := newCounter(64)
	c := start(t, newPush(t, cl, consumer.StartFrom(rocketmq.StrictLatest()), consumer.Subscribe("T", selector.All, got.handler())))
	require.NoError(t, c.stop())
	require.Equal(t, []string{master}, p.roles(wire.ReqQueryConsumerOffset, wire.ReqGetMaxOffset), "where to begin is the master's to say")
	require.Equal(t, []string{master, replica}, p.roles(wire.ReqUnregisterClient))
	b.mu.Lock()
	b.offsets[wire.MessageQueue{Topic: "T", Broker: "b"}] = 0
	b.mu.Unlock()
	p.mu.Lock()
	p.asked = nil
	p.mu.Unlock()

	c = start(t, newPush(t, cl, consumer.Subscribe("T", selector.All, got.handler())))
	got.wait(t)
	require.Eventually(t, func() bool { return len(p.pulls()) == 4 }, patience, time.Millisecond)
	require.Equal(t, []string{"master 0", "replica 32", "replica 64", "master 64"}, p.pulls())
	p.mu.Lock()
	for _, q := range p.asked {
		require.False(t, q.role == replica && q.commit, "a replica is not told how far the group is")
	}
	p.mu.Unlock()

	// The replica dies while it is asked.
	p.set(1, func(role string, _ *wire.PullRequest) *pullAnswer {
		if role == replica {
			return &pullAnswer{end: true}
		}
		return nil
	})
	b.put("T", 0, "64")
	require.Eventually(t, func() bool { return got.bodies()["64"] == 1 }, patience, time.Millisecond)
	b.put("T", 0, "65")
	require.Eventually(t, func() bool { return got.bodies()["65"] == 1 }, patience, time.Millisecond)
	require.NoError(t, c.stop())
	require.EqualValues(t, 66, b.stored("T", 0))
	require.Equal(t, []string{master}, p.roles(wire.ReqUpdateConsumerOffset, wire.ReqQueryConsumerOffset))
	require.Equal(t, []string{master, replica}, p.roles(wire.ReqHeartBeat))
	// The replica is told again only if it has been connected to again meanwhile.
	require.Contains(t, p.roles(wire.ReqUnregisterClient), master)
}

// Whatever a replica does but serve: the master is asked in the same moment, and
// the replica is left alone for a while.
func TestAReplicaThatFails(t *testing.T) {
	for name, fails := range map[string]*pullAnswer{
		"unreachable":              nil,
		"the connection ends":      {end: true},
		"slaveReadEnable is false": {code: wire.RespSystemBusy},
		"it is behind":             {code: wire.RespPullOffsetMoved, h: wire.PullResponse{NextOffset: 0}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, b *fake) {
				b.topic("T", 1)
				p := newPair(t, b, func(role string) (net.Listener, string) {
					addr := role + ":10999"
					ln, err := b.net.Listen(addr)
					require.NoError(t, err)
					return ln, addr
				})
				p.set(1, func(role string, _ *wire.PullRequest) *pullAnswer {
					if role == replica {
						return fails
					}
					return nil
				})
				if fails == nil {
					require.NoError(t, p.servers[replica].Close(context.Background()))
				}
				var got received
				c := start(t, newPush(t, b.client(), consumer.StartFrom(rocketmq.Earliest()), consumer.Subscribe("T", selector.All, got.handler())))
				synctest.Wait()
				want := []string{"master 0"}
				also := func(roles ...string) {
					t.Helper()
					for _, role := range roles {
						if fails != nil || role == master {
							want = append(want, fmt.Sprint(role, " ", len(got.bodies())))
						}
					}
					require.Equal(t, want, p.pulls())
				}
				put := func(body string) {
					t.Helper()
					before := time.Now()
					b.put("T", 0, body)
					synctest.Wait()
					require.Equal(t, 1, got.bodies()[body])
					require.Zero(t, time.Since(before))
				}
				also()
				put("one") // the held pull has no suggestion
				also(master)
				time.Sleep(16 * time.Second) // the held pull ends with nothing
				synctest.Wait()
				want = p.pulls()
				p.held(b, 1)
				put("two")
				also(replica, master)
				require.Error(t, c.Health().Queues[0].LastError, "an operator may want to know")
				p.held(b, 1)
				put("three")
				also(master)
				require.NoError(t, c.Health().Queues[0].LastError)
				require.NoError(t, c.stop())
				require.EqualValues(t, 3, b.stored("T", 0))
			})
		})
	}
}

// held makes the answer to the pull that is held suggest a broker.
func (p *pair) held(b *fake, id int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, x := range b.polls {
		x.suggest = id
	}
}
