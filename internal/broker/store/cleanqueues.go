package store

import (
	"context"
	"errors"
	"io/fs"
)

// cleanQueues moves the minimum of every queue to the log's, removes the files
// of queues that only point to what is gone, and has the other followers
// forget it, too. Files are removed with pauses in between; what does not get
// done within one interval is left to the next run.
func (c *cleaning) cleanQueues(ctx context.Context) {
	s, cfg := c.s, &c.s.cfg
	begin, now := s.log.begin(), cfg.Clock.Now()
	grown := begin != c.cleanedTo
	if !grown && now.Sub(c.corrected) < correctQueuesEvery {
		return
	}
	c.queues = s.queues.all(c.queues[:0])
	defer func() { clear(c.queues) }()
	for _, q := range c.queues {
		q.cq.CorrectMin(begin)
	}
	c.corrected = now
	if !grown {
		return
	}
	var errs error
	removed := 0
	for _, q := range c.queues {
		for q.cq.FirstExpired(begin) {
			if removed > 0 {
				if !c.pause(ctx, cfg.DeleteQueueInterval) || cfg.Clock.Now().Sub(now) >= cfg.CleanInterval {
					return
				}
			}
			removed++
			if err := c.removeUnits(q); err != nil {
				errs = errors.Join(errs, err)
				break
			}
		}
	}
	for _, f := range s.dispatch.followers {
		if f, ok := f.(cleaner); ok {
			errs = errors.Join(errs, f.clean(begin))
		}
	}
	if errs != nil {
		cfg.Logger.Error("consume queues or index not cleaned; trying again", "err", errs)
		return
	}
	c.cleanedTo = begin
	if removed > 0 {
		cfg.Logger.Info("removed consume queue files", "files", removed, "log_begin", begin)
	}
}

// removeUnits removes the first file of a queue. Queues belong to the
// dispatcher, and a topic that is deleted and made again meanwhile has files
// of the same names: so nobody dispatches until the file is gone.
func (c *cleaning) removeUnits(q *queue) error {
	var err error
	c.s.dispatch.borrow(func() { err = q.cq.RemoveFirst() })
	if err != nil {
		return err
	}
	if err = q.cq.SyncDir(); errors.Is(err, fs.ErrNotExist) {
		return nil // the topic has just been deleted
	}
	return err
}

// DropEmptyQueues removes, with their files, the queues whose records are all
// gone and for which unused is true (CLEAN_EXPIRED_CONSUMEQUEUE), and returns
// how many those were. A queue that is removed begins at offset 0 again should
// a message come for it. unused may be called under locks of the store and must
// not call it.
func (s *Store) DropEmptyQueues(ctx context.Context, unused func(topic string, queueID int32) bool) (int, error) {
	empty := func(q *queue) bool {
		return q.next == q.cq.Max() && q.cq.Min() == q.cq.Max() && unused(q.topic, q.id)
	}
	removed := 0
	var errs error
	for _, topic := range s.queues.topics() {
		n, err := s.dropQueues(ctx, topic, empty, nil)
		removed += n
		errs = errors.Join(errs, err)
		if ctx.Err() != nil {
			break
		}
	}
	return removed, errs
}
