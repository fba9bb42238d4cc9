// Package rocketmq is a client of Apache RocketMQ (the remoting protocol of
// 4.9 and 5.x) and of the broker that this module brings along.
//
// This package holds what all the others share: the connection handle
// [Client], messages, positions and errors. Producers, consumers and the other
// roles live in packages of their own and are built on a Client:
//
//	cl, err := rocketmq.NewClient(rocketmq.WithNameServers("127.0.0.1:9876"))
//	if err != nil {
//		return err
//	}
//	defer cl.Close(context.Background())
//
//	p, err := producer.New(cl)
//	if err != nil {
//		return err
//	}
//	res, err := p.Send(ctx, &rocketmq.Message{Topic: "orders", Body: []byte("hello")})
//
// # Rules that hold everywhere
//
// Constructors check their options and do no I/O; the first call connects.
// Every call that blocks takes a context, which bounds that call and nothing
// else; without a deadline a documented default applies. An error of nil means
// done and durable; every other outcome can be told apart with [errors.Is] and
// [errors.As] on the values of this package. All types are safe for concurrent
// use unless their comment says otherwise. Every role ends with Close, which
// waits for its goroutines.
//
// Two clients in one process share nothing, whether they talk to one cluster
// or to two.
package rocketmq
