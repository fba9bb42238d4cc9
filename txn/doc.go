// Package txn sends messages together with a local transaction: the message is
// delivered if the transaction commits, and is not if it does not, whatever
// dies in between. It is TransactionMQProducer of Apache's client.
//
//	tp, err := txn.NewProducer(client, "order-service", func(ctx context.Context, half *rocketmq.MessageView) (txn.State, error) {
//		switch paid, err := db.Find(ctx, half.TransactionID); { // asked when the outcome got lost
//		case err != nil:
//			return txn.Unknown, err
//		case paid:
//			return txn.Commit, nil
//		}
//		return txn.Rollback, nil
//	})
//	...
//	res, err := tp.Send(ctx, msg, func(ctx context.Context, tx *txn.Tx) (txn.State, error) {
//		if err := db.InsertOrder(ctx, order, tx.ID()); err != nil {
//			return txn.Rollback, err
//		}
//		return txn.Commit, nil
//	})
//
// First the message is stored at its broker as a half message, which nobody
// consumes. Then the local transaction runs. Its outcome is told to the broker,
// which delivers the message or drops it. If the broker does not hear of the
// outcome, for 6 s unless it is configured otherwise, it asks some producer of
// the group with a check, and again every 30 s (60 s before 5.0), 15 times in
// all. So a producer must be able to tell the outcome of what another process
// of its group has begun: write the transaction id in the local transaction
// itself, as above, and look for it. What is not there, and cannot come any
// more, is a rollback.
//
// A process that ends leaves its transactions to the others of the group; one
// of a group that starts is known to the brokers before it sends anything.
//
// A message may be delivered more than once, as with every send.
package txn
