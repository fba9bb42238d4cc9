// Package pop is the pipeline behind consumer.Simple: messages are received when
// the application asks for them, and acknowledged one by one. The brokers keep
// count of what each group has been given (POP, from Apache RocketMQ 5.0 on), so
// there are no offsets, no rebalance and no queues of one's own here.
//
// # Receiving
//
// A target is one topic at one broker, any of its queues. [Consumer.Receive] pops
// from one target after the other, each time beginning with another one, and
// returns what the first one has. It never lets a broker hold a POP: messages that
// such a request brings when nobody waits for it any more would be invisible for
// nobody. Instead a target that has nothing gets a watch, a NOTIFICATION (200054)
// that the broker holds until there is something to pop. It pops nothing, so it can
// be left alone: by a Receive whose context ends, or when the consumer closes. One
// watch serves all calls of Receive that wait.
//
// A target that failed, or that keeps announcing messages and has none for us,
// rests for a moment. A Receive that has nothing to do but wait sleeps until a
// watch ends or a rest is over.
//
// # After receiving
//
// A [Delivery] has the handle of one message. What is acknowledged is gone; what
// is not comes again, as the next attempt. What has had all its attempts is sent
// to the dead letters by the member that receives it once more, and messages whose
// tag the broker's filter let through by its hash alone are acknowledged unseen.
//
// # Goroutines and locks
//
// One goroutine per watch while it is held, and one per page that holds messages
// to be put away. All belong to one run.Group. Consumer.mu and Delivery.mu are
// leaves, and none is held across a request.
package pop
