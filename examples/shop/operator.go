package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/admin"
	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/producer"
)

// deadLettersCommand lists a group's dead letters, and has the group get them
// again if it is told to.
func deadLettersCommand(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("shop dead-letters", flag.ContinueOnError)
	fs.SetOutput(stderr)
	namesrv := fs.String("namesrv", "", "name servers, host:port separated by ';'")
	group := fs.String("group", newNames("").logistics, "consumer group")
	resend := fs.Bool("resend", false, "send those again that were not sent again before")
	switch err := fs.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	case *namesrv == "" || fs.NArg() > 0:
		fmt.Fprintln(stderr, "shop dead-letters: -namesrv is needed, and nothing but flags")
		return 2
	}
	if _, err := deadLetters(ctx, []rocketmq.Option{rocketmq.WithNameServers(*namesrv)}, *group, *resend, stdout); err != nil {
		fmt.Fprintln(stderr, "shop dead-letters:", err)
		return 1
	}
	return 0
}

// deadLetters prints a group's dead letters and, if resend is set, has the group
// get again those that it has not got again yet. n is how many it prints, or
// sends.
func deadLetters(ctx context.Context, opts []rocketmq.Option, group string, resend bool, out io.Writer) (n int, err error) {
	cl, err := rocketmq.NewClient(opts...)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, cl.Close(context.WithoutCancel(ctx))) }()
	if resend {
		again, err := admin.New(cl).Resend(ctx, group)
		for _, r := range again {
			if _, err := fmt.Fprintf(out, "sent again: %s for %s\n", r.ID, r.Topic); err != nil {
				return len(again), err
			}
		}
		return len(again), err
	}
	err = eachDeadLetter(ctx, cl, group, func(m *rocketmq.MessageView) error {
		n++
		_, err := fmt.Fprintf(out, "%s  %s  %s of %s: %s\n", m.StoredAt.Format(time.TimeOnly), m.ID, m.Keys, m.Topic, m.Body)
		return err
	})
	return n, err
}

// eachDeadLetter reads the topic of a group's dead letters from its beginning.
func eachDeadLetter(ctx context.Context, cl *rocketmq.Client, group string, f func(*rocketmq.MessageView) error) (err error) {
	topic := "%DLQ%" + group
	p, err := producer.New(cl)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close(context.WithoutCancel(ctx))) }()
	queues, err := p.Queues(ctx, topic)
	if errors.Is(err, rocketmq.ErrTopicNotFound) {
		return nil // there never was one
	}
	if err != nil {
		return err
	}
	pull, err := consumer.NewPull(cl, group)
	if err != nil {
		return err
	}
	for _, q := range queues {
		next, end, err := pull.Range(ctx, q)
		for err == nil && next < end {
			var page consumer.Page
			if page, err = pull.Pull(ctx, consumer.Request{Queue: q, Offset: next}); err == nil {
				for _, m := range page.Messages {
					if err := f(m); err != nil {
						return err
					}
				}
				next = page.Next
			}
		}
		if err != nil {
			return fmt.Errorf("dead letters in %s: %w", q, err)
		}
	}
	return nil
}

// listDead lists the dead letters of the logistics when those of so many orders
// are there.
func (s *shop) listDead(ctx context.Context, want int) error {
	cl, err := rocketmq.NewClient(s.opts...)
	if err != nil {
		return err
	}
	dead := make(map[string]bool)
	for {
		err = eachDeadLetter(ctx, cl, s.logistics, func(m *rocketmq.MessageView) error {
			dead[m.ShardingKey] = true
			return nil
		})
		if err != nil || len(dead) >= want {
			break
		}
		if pause(ctx, 100*time.Millisecond); ctx.Err() != nil {
			err = fmt.Errorf("%w: %d orders are dead letters, want %d", context.Cause(ctx), len(dead), want)
			break
		}
	}
	if err := errors.Join(err, cl.Close(context.WithoutCancel(ctx))); err != nil {
		return err
	}
	if want == 0 {
		return nil
	}
	s.tl.say("operator", "$ %s", s.command())
	_, err = deadLetters(ctx, s.opts, s.logistics, false, s.out)
	return err
}

// resendDead has the logistics get them again.
func (s *shop) resendDead(ctx context.Context, want int) error {
	if want == 0 {
		return nil
	}
	s.tl.say("operator", "$ %s -resend", s.command())
	n, err := deadLetters(ctx, s.opts, s.logistics, true, s.out)
	if err == nil && n < want {
		err = fmt.Errorf("%d dead letters were sent again, want %d", n, want)
	}
	return err
}

func (s *shop) command() string {
	return fmt.Sprintf("shop dead-letters -namesrv %s -group %s", s.namesrv, s.logistics)
}
