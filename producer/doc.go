// Package producer sends messages.
//
//	p, err := producer.New(cl)
//	if err != nil {
//		return err
//	}
//	defer p.Close(ctx)
//
//	res, err := p.Send(ctx, &rocketmq.Message{Topic: "orders", Tag: "paid", Body: body})
//	var se *rocketmq.SendError
//	switch {
//	case err == nil: // stored and durable, see res
//	case errors.Is(err, rocketmq.ErrTopicNotFound): // configuration
//	case errors.Is(err, rocketmq.ErrBusy): // slow down
//	case errors.As(err, &se): // se.Attempts says what happened where
//	}
//
// A [Producer] is safe for concurrent use and meant to be shared: sends of many
// goroutines travel together.
//
// # Delivery
//
// A send that fails is tried again on another broker, with the same message
// id. An attempt that got no answer may have been stored all the same, so that
// a message can arrive twice; consumers tell by MessageView.ID.
//
// Messages with the same ShardingKey go to one queue, in the order they were
// sent, as long as each send waits for the one before. Asynchronous sends of one
// caller leave in order too, but one that is tried again may be overtaken.
//
// # Ways to send
//
//	Send        waits for the broker's answer; 1 to some hundred goroutines share a connection well
//	SendAsync   has a callback; as fast as the machine allows, bounded by WithInflight
//	SendBatch   many messages of one topic in few requests
//	SendOneway  no answer at all: may be lost
//	Request     waits for a consumer's answer
//
// WithLinger turns asynchronous sends into batches on its own.
package producer
