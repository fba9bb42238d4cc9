//go:build unix

package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/wire"
	"github.com/gorocketmq/rocketmq/producer"
)

// TestKillUnderLoad kills the program with SIGKILL while producers send, and
// looks at what it has left: every message that was acknowledged, at its
// offset, and consume queues without gap or duplicate. Then it starts again on
// the same folder. Twice, or 20 times in the long run.
func TestKillUnderLoad(t *testing.T) {
	kills := 2
	if os.Getenv("CRASH_SEEDS") != "" {
		kills = 20
	}
	for _, flush := range []string{"ASYNC_FLUSH", "SYNC_FLUSH"} {
		t.Run(flush, func(t *testing.T) {
			k := killing{t: t, dir: t.TempDir(), next: map[int32]int64{}}
			k.conf = confFile(t, "flushDiskType="+flush+"\nmappedFileSizeCommitLog=1048576\nmappedFileSizeConsumeQueue=20000\n"+
				"defaultTopicQueueNums=4\nflushConsumeQueueThoroughInterval=500\nflushCommitLogThoroughInterval=500\n")
			for i := range kills {
				k.once(200 + rand.IntN(1500))
				k.check()
				require.Len(t, k.acked, 0, "kill %d", i)
			}
			t.Logf("%d kills, %d messages acknowledged and there, %d more that nobody waited for", kills, k.found, k.others)
		})
	}
}

// killTopic is created by the first send.
const killTopic = "kill-under-load"

// killing is one folder and what must be in it.
type killing struct {
	t         *testing.T
	dir, conf string
	sent      int

	mu    sync.Mutex
	acked map[[2]int64]string // of this life: body by queue and offset

	next          map[int32]int64 // per queue, the first offset that was not looked at
	found, others int
}

func (k *killing) args() []string {
	return []string{"-namesrv-listen", "127.0.0.1:0", "-listen", "127.0.0.1:0", "-store", k.dir, "-c", k.conf}
}

// once runs the program until n messages are acknowledged, and kills it.
func (k *killing) once(n int) {
	exe, err := os.Executable()
	require.NoError(k.t, err)
	cmd := exec.Command(exe, k.args()...)
	cmd.Env = append(os.Environ(), "RMQBROKER_TEST_MAIN=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	require.NoError(k.t, err)
	require.NoError(k.t, cmd.Start())
	namesrv, _, _ := awaitReady(k.t, stdout)

	ctx, cancel := context.WithTimeout(k.t.Context(), time.Minute)
	defer cancel()
	client, err := rocketmq.NewClient(rocketmq.WithNameServers(namesrv))
	require.NoError(k.t, err)
	p, err := producer.New(client, producer.WithRetries(0), producer.WithAutoCreate(4))
	require.NoError(k.t, err)
	k.acked = map[[2]int64]string{}
	enough := make(chan struct{})
	sending, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	var last atomic.Pointer[error]
	last.Store(new(error))
	for range 16 {
		k.sent++
		name := k.sent
		wg.Go(func() {
			for i := 0; sending.Err() == nil; i++ {
				body := fmt.Sprintf("%d-%d-%s", name, i, strings.Repeat("x", i*37%2000))
				res, err := p.Send(sending, &rocketmq.Message{Topic: killTopic, Body: []byte(body)})
				if err != nil {
					last.Store(&err) // killed, or not there yet
					continue
				}
				k.mu.Lock()
				k.acked[[2]int64{int64(res.Queue.ID), res.Offset}] = body
				if len(k.acked) == n {
					close(enough)
				}
				k.mu.Unlock()
			}
		})
	}
	select {
	case <-enough:
	case <-ctx.Done():
		k.mu.Lock()
		k.t.Errorf("only %d of %d messages were acknowledged in time: %v %s", len(k.acked), n, *last.Load(), stderr.String())
		k.mu.Unlock()
	}
	require.NoError(k.t, cmd.Process.Kill()) // in the middle of all that
	_ = cmd.Wait()                           // says that it was killed
	stop()
	wg.Wait()
	require.NoError(k.t, client.Close(context.Background()))
}

// check opens the folder, reads what this life has left, and leaves the
// folder as after a second kill.
func (k *killing) check() {
	o, err := parse(k.args(), &bytes.Buffer{})
	require.NoError(k.t, err)
	s, err := store.Open(o.broker.Store)
	require.NoError(k.t, err)
	defer s.Abandon()
	phy := int64(-1)
	for _, queue := range s.Queues(killTopic) {
		at := k.next[queue]
		for at < s.MaxOffset(killTopic, queue) {
			b, res := s.Get(nil, store.GetRequest{Topic: []byte(killTopic), QueueID: queue, Offset: at, MaxMsgs: 32})
			require.Equal(k.t, store.Found, res.Status, "queue %d at %d", queue, at)
			it := wire.Records(b)
			for r := new(wire.Record); ; at++ {
				ok, err := it.Next(r)
				require.NoError(k.t, err)
				if !ok {
					break
				}
				require.Equal(k.t, at, r.QueueOffset, "queue %d has a gap or a duplicate", queue)
				require.True(k.t, at == k.next[queue] || r.PhyOffset > phy, "queue %d has a record twice", queue)
				require.True(k.t, r.CheckBody())
				phy = r.PhyOffset
				key := [2]int64{int64(queue), at}
				if body, ok := k.acked[key]; ok {
					require.Equal(k.t, body, string(r.Body))
					delete(k.acked, key)
					k.found++
				} else {
					k.others++
				}
			}
			require.Equal(k.t, at, res.NextOffset)
		}
		k.next[queue] = at
	}
	for key := range k.acked {
		require.Fail(k.t, "an acknowledged message is lost", "queue %d offset %d", key[0], key[1])
	}
}
