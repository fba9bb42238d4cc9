// Package store keeps the messages of a broker: one commit log of mapped
// files that holds every record in the order of its arrival, and one consume
// queue of 20-byte units per (topic, queue) that points into it. The files
// are those of Apache RocketMQ 4.9 and 5.3, byte for byte; FORMAT.md beside
// this file describes them and what happens after a crash.
//
// One lock orders the log ([Store.Put]). Everything else follows the log
// through one dispatcher goroutine: consume queues, and the arrival notice
// that wakes long polls. The same code runs after a restart for records the
// queues have not seen yet.
package store
