// Package msgtrace is RocketMQ's own message trace: records of what became of
// messages, sent as messages to a topic of their own, where Apache's tools
// find them by message id and key (AsyncTraceDispatcher, TraceDataEncoder).
//
// Tracing never fails or delays what it watches. A [Tracer] encodes a record
// at once, so that nothing of the message is kept, and puts it into a bounded
// queue; what finds it full is dropped and counted. A goroutine of its own
// sends the queue's records, several in a message, through a send.Pipeline of
// its own, which no hook and no trace sees.
//
// Each kind of record has a file: pub.go for the end of a send. The rest
// (record.go, queue.go, tracer.go) knows of no kind: a context is one or more
// encoded records and the keys by which they are to be found.
package msgtrace
