package main

import "time"

const (
	topic  = "BenchTopic"
	queues = 8
)

// clients in the order in which a round runs them. The first is the base of
// the ratios.
var clients = []string{"official", "ours"}

// A workload is what a load process does: op is "send" (each worker sends the
// next message when the last is acknowledged), "paced" (so many a second) or
// "consume".
type workload struct {
	Name    string
	Text    string
	Op      string
	Workers int
	Body    int // bytes
	Count   int // send: stop after so many; consume: messages to expect
	Rate    int // paced: messages per second
}

var workloads = []workload{
	{Name: "sync-1-1k", Op: "send", Workers: 1, Body: 1024, Text: "synchronous send, 1 goroutine, 1 KiB"},
	{Name: "sync-16-1k", Op: "send", Workers: 16, Body: 1024, Text: "synchronous send, 16 goroutines, 1 KiB"},
	{Name: "sync-128-1k", Op: "send", Workers: 128, Body: 1024, Text: "synchronous send, 128 goroutines, 1 KiB"},
	{Name: "consume-1k", Op: "consume", Workers: 20, Body: 1024, Text: "push consumer, 20 handlers at a time, 1 KiB"},
	{Name: "consume-200", Op: "consume", Workers: 20, Body: 200, Text: "push consumer, 20 handlers at a time, 200 B"},
}

// fill is the load that stores what a consumer's workload reads.
func (w workload) fill(s settings) workload {
	return workload{Name: "fill", Op: "send", Workers: 128, Body: w.Body, Count: s.preload}
}

// A job is one load process's task, given to it as JSON.
type job struct {
	Client     string
	Work       workload
	NameServer string
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
	Rate      float64 // messages per second
	CPU       float64 // microseconds per message, load process
	BrokerCPU float64 // microseconds per message, broker process; 0 if unknown
	Allocs    float64 // per message, load process
	Bytes     float64 // allocated per message, load process
	Stolen    float64 // percent of the machine's time that its host took
	P50, P99  float64 // milliseconds from release to acknowledgement; paced only
	Start     float64 // seconds to the first acknowledged message; start only
	Resident  float64 // MiB of resident memory, idle; start only
}
