package pop

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/client"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Delivery is a message that was received, with its handle.
type Delivery struct {
	*rocketmq.MessageView
	c         *Consumer
	topic     *topic
	logOffset int64
	sysFlag   int32

	mu       sync.Mutex // guards all below
	handle   wire.PopHandle
	deadline time.Time
	acked    bool
	busy     bool          // a request with the handle is under way
	idle     chan struct{} // closed when it is over, for those who wait
}

// Deadline is when the message is visible to others again, by this machine's clock.
func (d *Delivery) Deadline() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.deadline
}

// take waits for the turn to use the handle. done means that the message was
// acknowledged: there is no turn then.
func (d *Delivery) take(ctx context.Context) (done bool, err error) {
	for {
		d.mu.Lock()
		if d.acked {
			d.mu.Unlock()
			return true, nil
		}
		if !d.busy {
			d.busy = true
			d.mu.Unlock()
			return false, nil
		}
		if d.idle == nil {
			d.idle = make(chan struct{})
		}
		idle := d.idle
		d.mu.Unlock()
		select {
		case <-idle:
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}

// tryTake is take for who does not want to wait.
func (d *Delivery) tryTake() (ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.acked || d.busy {
		return false
	}
	d.busy = true
	return true
}

// give ends a turn.
func (d *Delivery) give(acked bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.busy, d.acked = false, acked
	if d.idle != nil {
		close(d.idle)
		d.idle = nil
	}
}

// Ack has the message not come again. A second one does nothing.
func (d *Delivery) Ack(ctx context.Context) error {
	done, err := d.take(ctx)
	if done || err != nil {
		return err
	}
	err = d.ack(ctx)
	d.give(err == nil)
	return err
}

// ack is Ack in its turn.
func (d *Delivery) ack(ctx context.Context) error {
	_, err := d.request(ctx, wire.ReqAckMessage, 0)
	return err
}

// Extend has the message stay invisible for so long from now. The handle is a new
// one then.
func (d *Delivery) Extend(ctx context.Context, invisible time.Duration) error {
	done, err := d.take(ctx)
	if err != nil {
		return err
	}
	if done {
		return d.expired(errors.New("it was acknowledged"))
	}
	defer d.give(false)
	f, err := d.request(ctx, wire.ReqChangeMessageInvisibletime, invisible.Milliseconds())
	if err != nil {
		return err
	}
	var h wire.ChangeInvisibleResponse
	if err := h.DecodeExt(f); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.handle.Start = d.handle.Offset // the new checkpoint is of this message alone
	d.handle.PopTime, d.handle.InvisibleMillis, d.handle.ReviveQueue = h.PopTime, h.InvisibleMillis, h.ReviveQueue
	d.deadline = time.Now().Add(time.Duration(h.InvisibleMillis) * time.Millisecond)
	return nil
}

// request sends what has the fields of an acknowledgement.
func (d *Delivery) request(ctx context.Context, code int32, invisible int64) (*wire.Frame, error) {
	if err := d.late(); err != nil {
		return nil, err
	}
	addr, err := d.c.master(d.topic, d.Queue.Broker)
	if err != nil {
		return nil, err
	}
	f, err := d.c.cfg.Runtime.Call(ctx, addr, &wire.Command{Code: code, Ext: &wire.AckRequest{
		Group: d.c.group, Topic: wire.PopTopic(d.handle.Retry, d.c.group, d.topic.wireName), QueueID: d.handle.QueueID,
		Handle: d.handle.String(), Offset: d.handle.Offset, InvisibleMillis: invisible,
	}})
	var re *client.ResponseError
	if errors.As(err, &re) && (re.Code == wire.RespNoMessage || re.Code == wire.RespMessageIllegal) {
		return nil, d.expired(&rocketmq.BrokerError{Op: re.Op, Addr: re.Addr, Code: rocketmq.Code(re.Code), Remark: re.Remark})
	}
	return f, err
}

// late is the error of a handle whose time is over: a broker would say nothing.
func (d *Delivery) late() error {
	if !time.Now().Before(d.Deadline()) {
		return d.expired(nil)
	}
	return nil
}

func (d *Delivery) expired(cause error) error {
	return &rocketmq.HandleError{ID: d.ID, Queue: d.Queue, Offset: d.Offset, Deadline: d.Deadline(), Cause: cause}
}

// master is where a broker takes acknowledgements.
func (c *Consumer) master(t *topic, broker string) (string, error) {
	if route, ok := c.cfg.Runtime.CachedRoute(t.wireName); ok {
		if addr := route.MasterOf(broker); addr != "" {
			return addr, nil
		}
	}
	c.cfg.Runtime.RefreshRoute(t.wireName)
	return "", &noMaster{broker}
}

// noMaster is a broker that has none just now.
type noMaster struct{ broker string }

// Error implements error.
func (e *noMaster) Error() string { return "broker " + e.broker + " has no master that is known" }

// Is matches [rocketmq.ErrUnavailable].
func (e *noMaster) Is(target error) bool { return target == rocketmq.ErrUnavailable }
