// Package admin does what an operator of a cluster does.
//
//	a := admin.New(cl)
//
//	// What could not be handled goes to the dead letters after its last
//	// attempt. Once the reason is gone the group gets it again.
//	again, err := a.Resend(ctx, "orders-worker")
//
//	// Handle everything since this morning once more, or skip a backlog.
//	offs, err := a.ResetOffset(ctx, "orders-worker", "orders", rocketmq.AtTime(morning))
//	offs, err = a.ResetOffset(ctx, "orders-worker", "orders", rocketmq.StrictLatest())
//
// Calls go to the masters of the brokers concerned. One that fails on some
// brokers returns what was done on the others together with the error.
package admin
