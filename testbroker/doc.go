// Package testbroker runs a RocketMQ cluster inside the process: real name
// servers and brokers on free loopback ports, started in milliseconds, with
// nothing to install. Programs and tests reach it as they reach an Apache
// RocketMQ cluster, by the name server's address, and so can Java clients and
// mqadmin.
//
// A test needs one line:
//
//	func TestOrders(t *testing.T) {
//		cluster := testbroker.New(t, testbroker.Topic("orders", 4))
//		p, err := producer.New(cluster.Client(t))
//		if err != nil {
//			t.Fatal(err)
//		}
//		_, err = p.Send(t.Context(), &rocketmq.Message{Topic: "orders", Body: []byte("order 1001")})
//		if err != nil || len(cluster.Messages("orders")) != 1 {
//			t.Fatal("not stored", err)
//		}
//	}
//
// The cluster is ready when [New] returns and closed when the test ends; its
// servers log to the test's log, which is shown only if the test fails. Outside
// of tests use [Start].
//
// Data is in memory unless [Dir] names a folder; either way it is in the format
// of Apache RocketMQ, and [Cluster.Kill] and [Cluster.Restart] treat it as a
// disk. [Cluster.Messages], [Cluster.Offset] and [Cluster.Lag] look into the
// brokers without a client; [Cluster.WaitConsumed] and [Cluster.WaitIdle] wait for
// consumers without a sleep.
//
// [Cluster.On] has requests fail in every way they can: refused, lost, late, cut
// off, or done by the broker without an answer. [Cluster.Freeze], [Cluster.Crash]
// and [Cluster.FillDisk] do the same for whole servers. [Strict] fails the test over
// mistakes that would go unnoticed.
//
// With [ManualClock] the brokers' time stands still until the test moves it:
// [Cluster.Advance] and [Cluster.AdvanceToNext] take a failing message through
// all its retries, nearly five hours, in less than a second, and
// [Cluster.DeadLetters] shows where it ended. With [Virtual] a test can run in a
// bubble of testing/synctest, where time passes for clients as well.
//
// Topics must be made with [Topic] or [Cluster.CreateTopic] unless
// [AutoCreate] is on; RMQ_SYS_TRACE_TOPIC, for message traces, is there. Consumer
// groups need no preparation.
//
// docs/TESTING.md has recipes for the tests of a service.
package testbroker
