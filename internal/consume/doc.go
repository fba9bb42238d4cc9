// Package consume is the receiving pipeline behind the roles of package
// consumer: it shares queues out, pulls them, runs handlers, and moves offsets.
//
// # A queue's life
//
// The rebalance loop compares what the strategy gives us with what we have.
// A queue that was gained gets its start offset from the broker and becomes a
// [queue]; its first pull is sent. There is no goroutine per queue: a pull is
// an exchange on the broker's connection, and its Done takes the answer, puts
// a [page] of decoded messages in the queue's cache and sends the next pull,
// unless the cache is full; then the worker that makes room sends it.
//
// Workers run on a bounded pool. One is woken when a page arrives; each wakes
// another before its first call while there is more to do, so a burst of quick
// messages costs one or two switches and a burst of slow ones has all workers
// within microseconds.
//
// A message is finished when its handler succeeded or when a broker has
// taken a copy for the retry topic. The committed offset is that of the first
// unfinished message of the queue, so nothing is ever passed over. What no
// broker takes stays and is handled again.
//
// A queue that was lost stops pulling, drops what no handler has begun, commits
// at once, gives running handlers a moment, ends their context with ErrRevoked,
// and commits again if they got something done and the next owner is not
// further. The next owner waits for that a little, see handover.go.
//
// In order there is more to it: see locks.go for who may consume a queue, owned.go
// for what that means for its life, and order.go for failures.
//
// A member that broadcasts has all queues, and offsets of its own: see local.go.
//
// A [Lite] has no handlers, dispatchers and workers: its queues stand in line for
// whoever polls, see poll.go, and what counts as done is said in liteoffsets.go.
// A [Puller] has nothing but single requests.
//
// What a broker hears last counts, so the offsets of one queue only grow in the
// order in which frames are encoded ([queue.tell]); an offset that an operator
// or a broker moves back makes a new queue.
//
// # Goroutines
//
// A consumer has six of its own: the rebalance loop, the commit loop, the
// timers, the settler, which sends failed messages back, the watchdog, and one for
// heartbeats out of turn. In order a seventh keeps the locks; a Lite has no settler and no
// watchdog, and no heartbeats if its queues are given. Short-lived ones
// dial, load offsets, ask for locks, take queues over, revoke, and tell the application. All belong to one run.Group; the workers' are the pool's.
//
// # Locks
//
// Consumer.mu, queue.mu, dispatcher.mu, Lite.mu, given.mu, Puller.mu, the timers' and the locker's are leaves: none is
// taken while another is held, and none is held across a call of the
// connection, the pool or the application.
package consume
