// Package wire holds the bytes of RocketMQ's remoting protocol: frames and
// their two header encodings, request and response headers, the JSON dialect
// of bodies, stored messages, properties and ids. It knows nothing of sockets
// and imports the standard library only.
//
// Encoders append to the caller's buffer. Decoders check every length before
// they slice or allocate; what they return points into the input unless it
// says otherwise. An error is the answer to any malformed input, never a
// panic.
package wire
