// Package timer keeps what a broker knows of messages that are delivered at a
// time: the timer log, the timer wheel and their checkpoint, in the files of
// Apache RocketMQ 5.x (timerlog/, timerwheel, config/timercheck). FORMAT.md, one
// folder up, describes them.
//
// The truth is the queue of rmq_sys_wheel_timer, which has the messages. The log
// has one unit per message that has been read from there; units of the same slot,
// which is one second wide unless configured otherwise, form a chain. Both are
// derived: what of the log is not known to be on disk is cut off when a store is
// opened, and the messages are read again. The wheel, which has the ends of the
// chains, is written for brokers of Apache; ours finds them by reading the log.
package timer
