package testbroker_test

import (
	"context"
	"testing"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/producer"
	"github.com/gorocketmq/rocketmq/selector"
	"github.com/gorocketmq/rocketmq/testbroker"
)

// BenchmarkStart is a whole life: a cluster is started, one message is sent
// and consumed, everything is closed. to-first-message/ms is the part until
// the message has reached the handler.
func BenchmarkStart(b *testing.B) {
	for _, place := range []string{"memory", "disk", "strict", "virtual"} {
		b.Run(place, func(b *testing.B) {
			var first float64
			for b.Loop() {
				opts := []testbroker.Option{testbroker.Topic("T", 4)}
				switch place {
				case "disk":
					b.StopTimer()
					opts = append(opts, testbroker.Dir(b.TempDir()))
					b.StartTimer()
				case "strict":
					opts = append(opts, testbroker.Strict())
				case "virtual":
					opts = append(opts, testbroker.Virtual())
				}
				first += oneLife(b, opts)
			}
			b.ReportMetric(first/float64(b.N), "to-first-message/ms")
		})
	}
}

// oneLife returns the milliseconds until the first message was consumed.
func oneLife(b *testing.B, opts []testbroker.Option) float64 {
	ctx := context.Background()
	must := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	start := b.Elapsed()
	c, err := testbroker.Start(ctx, opts...)
	must(err)
	cl, err := rocketmq.NewClient(c.ClientOptions()...)
	must(err)
	got := make(chan struct{}, 1)
	con, err := consumer.NewPush(cl, "G", consumer.Subscribe("T", selector.All, consumer.Each(
		func(context.Context, *rocketmq.MessageView) error {
			got <- struct{}{}
			return nil
		})), consumer.StartFrom(rocketmq.Earliest()))
	must(err)
	ended := make(chan error, 1)
	go func() { ended <- con.Run(ctx) }()
	p, err := producer.New(cl)
	must(err)
	_, err = p.Send(ctx, &rocketmq.Message{Topic: "T", Body: []byte("first")})
	must(err)
	<-got
	took := b.Elapsed() - start
	must(con.Close(ctx))
	must(<-ended)
	must(cl.Close(ctx))
	must(c.Close(ctx))
	return float64(took.Microseconds()) / 1000
}
