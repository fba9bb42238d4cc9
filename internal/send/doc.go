// Package send is the pipeline behind producers: choose a queue, encode, try,
// try elsewhere, and say what happened.
//
// A send costs no goroutine, timer or context of its own. Its pooled attempt
// writes the request straight into the connection's output buffer, takes the
// answer on the connection's reader, and wakes the sender through a channel
// that is used again and again. Deadlines are the connection's business.
package send
