package broker

import (
	"sync"

	"github.com/gorocketmq/rocketmq/internal/broker/persist"
	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// How many messages wait for their time, by topic: GET_TIMER_METRICS (61), and
// the file config/timermetrics; and how far the timers are, GET_TIMER_CHECK_POINT
// (60). No fields are read.
//
// Answers: 0 with the table or the 56 bytes; 1 without timers.
//
// The counts are made anew from the timer log when a broker starts; the file
// gives the names of the topics, of which the log has only hashes.

const timerMetricsFile = "timermetrics"

// timerCounts are the counts. All methods are safe for concurrent use.
type timerCounts struct {
	clock clock.Clock

	mu      sync.Mutex // guards all below; nothing is called under it but the clock
	byHash  map[int32]*timerCount
	total   int64
	version wire.DataVersion
	changed bool
}

type timerCount struct {
	topic string // "": not known
	wire.TimerMetric
}

func newTimerCounts(c clock.Clock) *timerCounts {
	return &timerCounts{clock: c, byHash: map[int32]*timerCount{}}
}

// load reads the file. A file that cannot be read is not worth a refusal.
func (c *timerCounts) load(files persist.Files) {
	_, _ = persist.Load(files, timerMetricsFile, c.decode)
}

func (c *timerCounts) decode(data []byte) error {
	d, err := wire.DecodeTimerMetrics(data)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version = d.Version
	for topic, m := range d.Topics {
		c.byHash[wire.JavaHash(topic)] = &timerCount{topic: topic, TimerMetric: wire.TimerMetric{Timestamp: m.Timestamp}}
	}
	return nil
}

// begin takes the counts that the timer log gives, by hash of the topic.
func (c *timerCounts) begin(counts map[int32]int64) {
	for hash, n := range counts {
		c.add(nil, hash, n)
	}
}

// add counts messages of a topic, of which the name may be unknown.
func (c *timerCounts) add(topic []byte, hash int32, n int64) {
	now := c.clock.Now().UnixMilli()
	c.mu.Lock()
	defer c.mu.Unlock()
	x := c.byHash[hash]
	if x == nil {
		x = &timerCount{}
		c.byHash[hash] = x
	}
	if x.topic == "" && len(topic) > 0 {
		x.topic = string(topic)
	}
	x.Count += n
	x.Timestamp = now
	c.total += n
	c.version, c.changed = c.version.Next(now), true
}

// all is how many messages wait.
func (c *timerCounts) all() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(c.total, 0)
}

// encode is the content of the file.
func (c *timerCounts) encode() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := wire.TimerMetrics{Version: c.version, Topics: map[string]wire.TimerMetric{}}
	for _, x := range c.byHash {
		if x.topic != "" {
			d.Topics[x.topic] = x.TimerMetric
		}
	}
	return d.AppendJSON(nil)
}

// takeChanged tells whether the counts have changed since it was called last.
func (c *timerCounts) takeChanged() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.changed
	c.changed = false
	return was
}

// notSaved has the counts saved again.
func (c *timerCounts) notSaved() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed = true
}

func (b *Broker) handleTimerCheckpoint(r *remoting.Request) {
	if b.timers.files == nil {
		r.Reply(wire.RespSystemError, "timer messages are not enabled, timerWheelEnable is false", nil, nil)
		return
	}
	r.Reply(wire.RespSuccess, "", nil, b.timers.files.Checkpoint())
}

func (b *Broker) handleTimerMetrics(r *remoting.Request) {
	r.Reply(wire.RespSuccess, "", nil, b.timers.counts.encode())
}
