package broker

import (
	"context"
	"errors"
	"time"
)

// Close ends the broker cleanly: it tells the name servers, answers the pulls
// it holds, lets requests under way finish, and saves and flushes everything.
// ctx bounds the goodbyes and the wait for requests; the data is written in any
// case. Further calls, and calls after [Broker.Kill], wait for the first.
func (b *Broker) Close(ctx context.Context) error {
	b.ending.Do(func() {
		goodbye, cancel := context.WithTimeout(ctx, 3*time.Second)
		err := b.registrar.unregister(goodbye)
		cancel()
		if err != nil {
			b.log.Warn("name servers will notice the end by themselves", "err", err)
		}
		b.polls.close()
		b.pop.Drain()
		errs := []error{b.server.Close(ctx)}
		b.workers.Close()
		b.delays.stop()
		b.timers.stop()
		b.pop.Stop()
		b.trans.Stop(true)
		b.bg.Stop()
		b.registrar.close()
		b.saver.all()
		errs = append(errs, b.store.CloseWith(b.saver.last), b.timers.close())
		b.endErr = errors.Join(errs...)
		close(b.ended)
	})
	<-b.ended
	return b.endErr
}

// Kill ends the broker as the end of its process would: nobody is told,
// nothing is answered, saved or flushed. What the operating system has of the
// mapped files stays.
func (b *Broker) Kill() {
	b.ending.Do(func() {
		now, cancel := context.WithCancel(context.Background())
		cancel()
		b.polls.abandon()
		b.pop.Abandon()
		_ = b.server.Close(now)
		b.workers.Close()
		b.delays.stop()
		b.timers.stop()
		b.pop.Stop()
		b.trans.Stop(false)
		b.bg.Stop()
		b.registrar.close()
		b.store.Abandon()
		_ = b.timers.close()
		close(b.ended)
	})
	<-b.ended
}
