// Package client is the runtime behind rocketmq.Client: which name servers and
// brokers there are, how to reach them, and who of this process takes part in
// which group. It knows nothing of the root package; names are those on the
// wire, with the namespace's prefix (see [Runtime.Wrap]).
//
// A [Runtime] starts nothing until it is first used. From then on one
// goroutine keeps routes fresh, one sends heartbeats, and short-lived ones ask
// name servers and brokers. Close ends them all.
//
// # Locks
//
// Each lock is a leaf: none is held while another is taken, across I/O, a
// channel operation or a call to a registered group. The hot path, a cached
// route and a live connection, takes none here.
package client
