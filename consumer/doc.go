// Package consumer receives messages. [Push] hands them to handlers, many at a
// time, [Ordered] those of each queue one after the other. Both share the queues of
// their topics with the other members of their group, unless a Push broadcasts
// ([WithModel]):
//
//	c, err := consumer.NewPush(cl, "billing",
//		consumer.Subscribe("orders", selector.Tags("paid"), consumer.Each(handle)),
//		consumer.StartFrom(rocketmq.Earliest()),
//	)
//	if err != nil {
//		return err
//	}
//	return c.Run(ctx) // until ctx ends; running handlers finish first
//
// The others have no handlers. [LitePull] returns messages when it is asked to, of
// queues that it shares with its group or that it was given, and commits offsets.
// [Simple] receives messages and acknowledges each by itself. [Pull] reads one
// queue from one offset, and that is all.
//
// # What is promised
//
// Every message is handled at least once. A message counts as done when its
// handler returned nil, or when the broker has stored a copy of it for a retry.
// The group's offset of a queue is that of the first message that is not
// done, so a crash repeats messages and never loses one. Handlers must
// therefore bear seeing a message twice: after a crash, when a queue moves
// to another member, and after a failure.
//
// When a queue moves from one live member to another, the new owner waits 100 ms
// (as long as the offset still moves up to 1 s) before it pulls, so that what the
// old one has done is committed by then. A member that is alone does not wait,
// and neither does [Push.Ready]. An ordered queue is handed over by its lock, after
// the offset was committed: what comes twice is what a member that died had not
// committed, or one whose handler was cut short had not finished.
//
// With [Broadcasting] every member has all queues, a failed message is dropped, and
// offsets are kept where [WithOffsetStore] says.
//
// All members of a group must subscribe to the same topics with the same
// expressions and divide them by the same strategy.
package consumer
