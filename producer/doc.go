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
// sent, as long as each send waits for the one before.
package producer
