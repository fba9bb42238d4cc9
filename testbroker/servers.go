package testbroker

import (
	"context"
	"fmt"
)

// Kill ends a broker as the death of its process does: connections break,
// nothing is said to the name servers, nothing is flushed. Its files, or its
// memory, stay for [Cluster.Restart]. replica must be 0: there is one broker
// of each name. An unknown broker, or one that is down, fails the test.
func (c *Cluster) Kill(broker string, replica int) {
	c.helper()
	c.must(c.inTurn(func(context.Context) error {
		n, err := c.node(broker, replica)
		if err != nil {
			return err
		}
		return n.kill()
	}))
}

// Crash ends a broker as a power failure does: it dies as with [Cluster.Kill],
// and what it had not flushed may be gone, there, or torn. seed decides, so that
// a run can be repeated; with [SyncFlush] no message that was answered is ever
// lost. It needs [CrashDisk]. [Cluster.Restart] has the broker recover. replica
// must be 0.
func (c *Cluster) Crash(broker string, replica int, seed uint64) {
	c.helper()
	c.must(c.inTurn(func(context.Context) error {
		n, err := c.node(broker, replica)
		if err != nil {
			return err
		}
		if err := n.crash(seed); err != nil {
			return fmt.Errorf("Crash(%q): %w", broker, err)
		}
		return nil
	}))
}

// Freeze makes a server look dead without being it: its connections stay open
// and new ones are accepted, but it reads nothing and answers nothing, as a
// process that was stopped or a machine that swaps. What comes is served after
// [Cluster.Thaw]. The server is a broker, by its name, or namesrv-0 and so on. A
// restart thaws it.
func (c *Cluster) Freeze(server string) {
	c.helper()
	c.must(c.inTurn(func(context.Context) error {
		t, err := c.tapOf(server)
		if err != nil {
			return err
		}
		return t.freeze()
	}))
}

// Thaw ends a [Cluster.Freeze].
func (c *Cluster) Thaw(server string) {
	c.helper()
	c.must(c.inTurn(func(context.Context) error {
		t, err := c.tapOf(server)
		if err == nil && !t.release() {
			err = fmt.Errorf("%s is not frozen", server)
		}
		return err
	}))
}

// Restart stops a broker cleanly, if it is up, and starts it again on the same
// port with the same data. It is registered with all name servers that are up
// when Restart returns. replica must be 0. A broker that cannot be started
// fails the test.
func (c *Cluster) Restart(broker string, replica int) {
	c.helper()
	c.must(c.inTurn(func(ctx context.Context) error {
		n, err := c.node(broker, replica)
		if err != nil {
			return err
		}
		if err := n.stop(ctx); err != nil {
			return err
		}
		return n.start(ctx)
	}))
}

// KillNameServer ends the i-th name server, counted from 0: its connections
// break and all it knew is gone.
func (c *Cluster) KillNameServer(i int) {
	c.helper()
	c.must(c.inTurn(func(ctx context.Context) error {
		ns, err := c.nameServer(i)
		if err != nil {
			return err
		}
		if ns.srv == nil {
			return fmt.Errorf("name server %d is down already", i)
		}
		return ns.stop(ctx)
	}))
}

// RestartNameServer ends the i-th name server, counted from 0, if it is up, and
// starts one that knows nothing on the same port. All brokers that are up have
// registered again when it returns.
func (c *Cluster) RestartNameServer(i int) {
	c.helper()
	c.must(c.inTurn(func(ctx context.Context) error {
		ns, err := c.nameServer(i)
		if err != nil {
			return err
		}
		if err := ns.stop(ctx); err != nil {
			return err
		}
		if err := ns.start(ctx); err != nil {
			return err
		}
		for _, n := range c.brokers {
			if n.broker() == nil {
				continue
			}
			if err := ns.srv.WaitBroker(ctx, n.name); err != nil {
				return fmt.Errorf("waiting for %s to register: %w", n.name, err)
			}
		}
		return nil
	}))
}

// SetAutoCreate switches the creation of topics at first use on or off, for
// all brokers. It takes effect with each broker's next [Cluster.Restart].
func (c *Cluster) SetAutoCreate(on bool) {
	c.helper()
	c.must(c.inTurn(func(context.Context) error {
		for _, n := range c.brokers {
			n.cfg.AutoCreateTopic = on
		}
		return nil
	}))
}

// FillDisk makes a broker believe that so much of its disk is used, from 0 to
// 1; it has taken note when FillDisk returns. Above 0.9 it refuses messages
// ([rocketmq.ErrUnavailable]), until FillDisk says less. As in production, above
// 0.85 it also removes the oldest files of its commit log, see [SegmentSize],
// some every second, but never the one it writes; nothing is removed for its age.
// Without FillDisk a broker believes its disk to be empty, whatever the
// machine's is like. An unknown broker or a ratio out of range fails the test.
func (c *Cluster) FillDisk(broker string, ratio float64) {
	c.helper()
	c.must(c.inTurn(func(ctx context.Context) error {
		n, err := c.node(broker, 0)
		if err != nil {
			return err
		}
		if !(ratio >= 0 && ratio <= 1) {
			return fmt.Errorf("FillDisk(%q, %v): the ratio is from 0 to 1", broker, ratio)
		}
		if c.cfg.quota > 0 {
			return fmt.Errorf("FillDisk(%q): the disk has a size, see DiskQuota", broker)
		}
		return n.fillDisk(ctx, ratio)
	}))
}

// inTurn runs f while nobody else starts or stops servers.
func (c *Cluster) inTurn(f func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	release, err := c.takeTurn(ctx)
	if err != nil {
		return err
	}
	defer release()
	if c.closed {
		return errClosed
	}
	return f(ctx)
}

func (c *Cluster) node(broker string, replica int) (*node, error) {
	for _, n := range c.brokers {
		if n.name == broker && replica == 0 {
			return n, nil
		}
	}
	return nil, fmt.Errorf("there is no broker %q with replica %d", broker, replica)
}

func (c *Cluster) nameServer(i int) (*nameServer, error) {
	if i < 0 || i >= len(c.nameServers) {
		return nil, fmt.Errorf("there is no name server %d", i)
	}
	return c.nameServers[i], nil
}

func (c *Cluster) tapOf(server string) (*tap, error) {
	for _, n := range c.brokers {
		if n.name == server {
			return n.tap, nil
		}
	}
	for _, ns := range c.nameServers {
		if ns.tap.server == server {
			return ns.tap, nil
		}
	}
	return nil, fmt.Errorf("there is no server %q", server)
}
