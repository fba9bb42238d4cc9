package main

import "time"

const (
	topic  = "BenchTopic"
	queues = 8
)

// clients in the order in which a round runs them. The first is the base of
// the ratios.
var clients = []string{"official", "ours"}

// A workload is what a load process does. Op is what each worker does again
// and again, or the whole load:
//
//	send     sends a message and waits for its acknowledgement
//	batch    sends Batch messages in one call and waits
//	oneway   sends a message without acknowledgement
//	async    sends a message with a callback, Inflight of them at most under way
//	paced    so many messages a second, each acknowledged
//	consume  a push consumer with as many handlers as there are workers
//	idle     the same, of a topic that stays empty
//	latency  so many messages a second, each to a consumer's handler
type workload struct {
	Name     string
	Text     string
	Op       string
	Workers  int
	Inflight int     // async
	Batch    int     // batch: messages of one call
	Body     int     // bytes
	Count    int     // send: stop after so many; consume: messages to expect
	Rate     int     // paced, latency: messages per second
	Queues   int     // of the topic; 0: the usual number
	Must     float64 // least ratio of the rates that is asked of ours
	limits   []limit // in its place
}

var workloads = []workload{
	{Name: "sync-1-1k", Op: "send", Workers: 1, Body: 1024, Must: 2, Text: "synchronous send, 1 goroutine, 1 KiB"},
	{Name: "sync-16-1k", Op: "send", Workers: 16, Body: 1024, Must: 4, Text: "synchronous send, 16 goroutines, 1 KiB"},
	{Name: "sync-128-1k", Op: "send", Workers: 128, Body: 1024, Must: 6, Text: "synchronous send, 128 goroutines, 1 KiB"},
	{Name: "async-256", Op: "async", Workers: 1, Inflight: 256, Body: 1024, Must: 8, Text: "asynchronous send, 1 goroutine, 256 outstanding, 1 KiB"},
	{Name: "oneway-16", Op: "oneway", Workers: 16, Body: 1024, Must: 10, Text: "one-way send, 16 goroutines, 1 KiB; the rate is the broker's"},
	{Name: "batch-32x200", Op: "batch", Workers: 4, Batch: 32, Body: 200, Must: 2, Text: "synchronous send of 32 messages of 200 B at once, 4 goroutines; ours give each an id"},
	{Name: "consume-1k", Op: "consume", Workers: 20, Body: 1024, Must: 4, Text: "push consumer, 20 handlers at a time, 1 KiB"},
	{Name: "consume-200", Op: "consume", Workers: 20, Body: 200, Must: 6, Text: "push consumer, 20 handlers at a time, 200 B"},
}

// fill is the load that stores what a consumer's workload reads.
func (w workload) fill(s settings) workload {
	return workload{Name: "fill", Op: "send", Workers: 128, Body: w.Body, Count: s.preload}
}

// count is how many messages a consumer reads. A null broker has more: it is
// to last about as long.
func (w workload) count(s settings, kind string) int {
	if kind == onNull {
		return 5 * s.preload / queues * queues
	}
	return s.preload
}

// A job is one load process's task, given to it as JSON.
type job struct {
	Client     string
	Work       workload
	NameServer string
	Broker     string
	Group      string
	Warmup     time.Duration
	Window     time.Duration
	BrokerPID  int
}

// A point is what a load process measured. Rates and costs are those of the
// measured window; Total also counts the messages before and after it.
type point struct {
	Client    string
	Total     int64
	Calls     float64 // one-way: messages per second that the client's calls took
	Rate      float64 // messages per second
	CPU       float64 // microseconds per message, load process
	BrokerCPU float64 // microseconds per message, broker process; 0 if unknown
	Allocs    float64 // per message, load process
	Bytes     float64 // allocated per message, load process
	Writes    float64 // write calls per message, load process; 0 if unknown
	Reads     float64 // read calls likewise
	Stolen    float64 // percent of the machine's time that its host took
	P50, P99  float64 // milliseconds from release to acknowledgement (paced) or handler (latency)
	Busy      float64 // percent of a core that the load process takes; idle only
	Start     float64 // seconds to the first acknowledged message; start only
	Resident  float64 // MiB of resident memory: of an idle consumer, or of a started broker
}
