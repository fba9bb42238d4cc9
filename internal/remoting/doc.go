// Package remoting moves frames: connections that carry calls in both
// directions, the server that accepts them and the client's pool that dials
// them. It knows frames and codes of the framework, nothing of topics.
//
// # A connection
//
// One [Conn] serves both ends. Whoever wants to send appends a frame to the
// connection's only output buffer; whoever finds that nobody is writing
// becomes the writer and writes the buffer out with no lock held, so frames of
// concurrent callers share a system call. A caller that must not write
// ([Later]) hands the buffer to the connection's flusher goroutine, and a
// caller that gets stuck in a write (a peer that does not read) is taken out
// of it after about 100 ms and the flusher goes on.
//
// One goroutine reads. It decodes frames where they lie in its buffer, hands
// responses to their [Exchange] and requests to the [Handler], and writes the
// replies made on the way once it has no further complete frame to look at.
//
// No call has a timer. A pending call carries its deadline, and a sweeper, one
// per [Server] or [Pool], looks every 50 ms at the connections that have
// something to watch: overdue calls, writes without progress, silent peers.
// The same sweeper closes idle connections.
//
// # Goroutines
//
// A connection has two (reader and flusher), a server one per listener plus
// the sweeper, a pool the sweeper plus one per dial under way. All belong to
// the server or the pool; its Close waits for them.
//
// # Locks
//
// The pending table's, the output buffer's and the owner's are leaves: none is
// taken while another is held, and none is held across I/O, a channel
// operation, or a call of [Exchange.Done], [Handler] and the callbacks.
// [Exchange.AppendFrame] and [Responder.AppendResponse] are the exception by
// contract: they run under the output buffer's lock and only encode.
package remoting
