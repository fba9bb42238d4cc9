// Package interop is the interoperability suite: this module's client against
// the real Apache RocketMQ name server and broker, and Apache's Java client,
// the official Go client and mqadmin against cmd/rmqbroker. It exports
// nothing; everything is in tests behind the build tag "interop":
//
//	go test -tags interop -count=1 -timeout 30m -v ./interop/...
//
// or "make interop". A JDK (17 or newer) and Maven must be on the PATH; Maven
// fetches Apache's jars once into the user's cache directory. Each pairing
// prints one line that starts with "pairing:".
//
// On a quiet machine with two cores it takes about ten minutes. The tests of one
// cluster run side by side, because most of what they do is to wait; a busy machine
// makes them slower and no more: nothing is given up within patience, and where a
// client may be late no upper bound is close.
//
// TestDisk exchanges store directories. What rmqbroker leaves, after a clean
// stop and after kill -9, is opened by Apache 5.3.3 and 4.9.7, and theirs by
// rmqbroker; each serves every message, key, id and bound of a queue to the
// Java client. "rmqbroker store check" looks at every directory on the way. Both
// sides have the same file sizes in their configuration, which the files do
// not say.
//
// TestDiskTimers does the same with messages that are not due yet: what one side
// took the other delivers, on time and once. TestDiskTransactions does so with half
// messages, and with messages of delay levels: what is undecided is asked about,
// what is decided is not.
//
// The shop and the small examples run against Apache 5.3.3.
//
// mqadmin of 5.3.3 looks into our push, lite pull and simple consumers, through Apache's
// broker and through rmqbroker, and has the first handle single messages again.
//
// Every way to send has pairings of its own. What our producer sends to
// Apache's brokers and to rmqbroker the Java consumer reads, and what Java
// clients and the official Go client send to rmqbroker our consumer reads: ids,
// keys, tags, properties, bodies, queues and offsets must be those the senders
// were told, those of members of batches too (see record). Requests and replies
// go between Java, the Go client and ours. 4.9.7 has no timers and no recalls,
// and Apache's 5.x take no reply without a body; the rest runs everywhere.
//
// So has what consumer groups do. Members of our client, of Java's 5.3.3 and 4.9.7
// and of the official Go client do what the properties of messages say (see
// java/Consume.java): they fail until an attempt is good or the message is a dead
// letter; they consume in order, with suspended queues; and they share the queues of
// a topic, of ordered groups too, while some of them leave and come back. Every
// message must be handled unchanged, in order where that is promised, and what comes
// twice is counted: nothing may while the members stay, and little when one leaves.
//
// POP is tried with 5.3.3: our simple consumer, and Java's push consumer when the
// broker has it pop (mqadmin setConsumeMode), on Apache's broker and on rmqbroker, each by
// itself and both in one group. What is not acknowledged comes again as the next
// attempt, what is held back does not, and what has had all attempts is a dead letter.
//
// Our lite pull consumer shares a group with Java's, and our bare pull reads a
// topic, on Apache 5.3.3 and on rmqbroker.
//
// Some pairings have Apache on both ends. They are the control: they show that
// the Java and Go programs and the reading of mqadmin's tables accept the real
// thing, so that a failure against this module's broker means something.
//
// Environment:
//
//	INTEROP_VERSIONS  comma-separated subset of Apache versions to run
//	INTEROP_KEEP      if set, keep the directory with configurations, logs and
//	                  stores, and print its path
package interop
