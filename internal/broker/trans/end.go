package trans

import (
	"context"
	"time"

	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// findTimeout bounds how long a request waits for a half message that is on its
// way through the store, and for the index.
const findTimeout = time.Second

// Answer is how a request ended. It is called once, by whoever ends it, and
// must not block.
type Answer func(code int32, remark string)

// ending is one request to decide a transaction. Once the store has its op
// record, the store is its only owner.
type ending struct {
	s      *Service
	req    *wire.EndTransactionRequest
	h      half
	e      *entry // nil: it is in the table no more
	answer Answer
}

// End decides a transaction. It may wait for the disk. The answer may come
// later, and never comes to a request that decides nothing.
func (s *Service) End(req *wire.EndTransactionRequest, answer Answer) {
	x := &ending{s: s, req: req, answer: answer}
	ok := s.find(x)
	if req.CommitOrRollback == 0 {
		if ok && req.FromCheck { // else it is no answer to a check
			x.undecided()
		}
		return
	}
	if !ok {
		answer(wire.RespSystemError, "Find prepared transaction message failed")
		return
	}
	if code, remark := x.check(); code != wire.RespSuccess {
		answer(code, remark)
		return
	}
	if !x.claim() {
		x.afterwards()
		return
	}
	x.carryOut()
}

// find looks the half message up. It may not have come as far as to be read.
func (s *Service) find(x *ending) bool {
	b, ok := s.store.ViewMessage(nil, x.req.CommitLogOffset)
	if !ok && x.req.CommitLogOffset >= s.store.FlushedTo() {
		ctx, cancel := context.WithTimeout(s.tasks.Context(), findTimeout)
		err := s.store.WaitDispatched(ctx)
		cancel()
		if err == nil {
			b, ok = s.store.ViewMessage(nil, x.req.CommitLogOffset)
		}
	}
	if !ok {
		return false
	}
	_, err := wire.DecodeRecord(b, &x.h.Record)
	return err == nil && string(x.h.Topic) == wire.TopicHalf && x.h.read()
}

// check goes through Apache's checks, in its order.
func (x *ending) check() (code int32, remark string) {
	s, h := x.s, &x.h
	if !x.req.FromCheck && h.immunity > 0 {
		if age := s.now() - h.since(); age > max(h.immunity, s.cfg.Timeout).Milliseconds() {
			return wire.RespIllegalOperation, "the time in which the producer decides is over (" + wire.PropCheckImmunitySeconds +
				"), the broker asks now; the transaction is decided by the answer to that"
		}
	}
	switch {
	case string(h.group) != x.req.Group:
		return wire.RespSystemError, "The producer group wrong"
	case h.QueueOffset != x.req.TranStateOffset:
		return wire.RespSystemError, "The transaction state table offset wrong"
	case h.PhyOffset != x.req.CommitLogOffset:
		return wire.RespSystemError, "The commit log offset wrong"
	}
	return wire.RespSuccess, ""
}

// undecided takes a producer's answer that it does not know yet.
func (x *ending) undecided() {
	s := x.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.table.find(&x.h); e != nil {
		s.answered(e)
	}
}

// claim makes the request the only one that is busy with the transaction. It is
// false if that is not in the table, because it has been decided or given up.
func (x *ending) claim() bool {
	s, h := x.s, &x.h
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		e := s.table.find(h)
		if e == nil {
			if _, done := s.done[h.QueueOffset]; done || h.QueueOffset < s.read {
				return false
			}
			e = s.add(h, s.firstDue(h)) // faster than the goroutine
		}
		if s.hold(e) {
			x.e = e
			return true
		}
	}
}

// carryOut commits or rolls back.
func (x *ending) carryOut() {
	s := x.s
	if x.req.CommitOrRollback == wire.SysTranCommit {
		m := x.h.committed()
		s.cfg.Park(&m)
		res, _ := s.cfg.Put(&m, nil)
		if !res.Status.Stored() {
			x.failed(res)
			return
		}
		s.progress.wrote(res.End)
	}
	if s.cfg.OpInterval > 0 || x.e == nil {
		x.decided()
		s.collect(x.half())
		x.answer(wire.RespSuccess, "")
		return
	}
	op := s.opMessage(opBody(nil, []int64{x.half()}))
	if res, later := s.cfg.Put(&op, x); !later {
		x.Stored(res)
	}
}

// half is the half offset that the op record lists.
func (x *ending) half() int64 {
	if x.e == nil {
		return x.h.QueueOffset
	}
	return x.e.offset // nobody moves it while we are busy with it
}

// Stored implements store.Waiter: the op record is in the log, and with
// synchronous flush on disk, or it is not.
func (x *ending) Stored(res store.PutResult) {
	s := x.s
	switch {
	case res.Status.Stored():
		s.wroteOp(res.QueueOffset, res.End, []int64{x.half()})
		x.decided()
	case x.req.CommitOrRollback == wire.SysTranCommit:
		// The message is out. That is what counts, and what is remembered.
		x.decided()
		s.collect(x.half())
	default:
		x.failed(res)
		return
	}
	x.answer(wire.RespSuccess, "")
}

// decided takes the transaction out of the table.
func (x *ending) decided() {
	s := x.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if x.e == nil {
		delete(s.late, x.h.origin())
		s.free.Broadcast()
		return
	}
	s.remove(x.e)
	s.let(x.e)
}

// failed leaves the transaction undecided.
func (x *ending) failed(res store.PutResult) {
	s := x.s
	s.mu.Lock()
	if x.e == nil {
		delete(s.late, x.h.origin())
		s.free.Broadcast()
	} else {
		s.answered(x.e)
		s.let(x.e)
	}
	s.mu.Unlock()
	code, remark := int32(wire.RespSystemError), res.Status.String()
	switch res.Status {
	case store.MessageIllegal, store.PropertiesSizeExceeded:
		code = wire.RespMessageIllegal
	case store.ServiceNotAvailable:
		code = wire.RespServiceNotAvailable
	}
	if res.Err != nil {
		remark += ": " + res.Err.Error()
	}
	x.answer(code, remark)
}

// afterwards answers a request for a transaction that is not in the table any
// more. The same decision once more is a success, because the answer to the
// first request may have been lost. What was given up can still be committed.
func (x *ending) afterwards() {
	s, h := x.s, &x.h
	s.mu.Lock()
	for {
		if _, busy := s.late[h.origin()]; !busy {
			break
		}
		s.free.Wait()
	}
	s.late[h.origin()] = struct{}{}
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(s.tasks.Context(), findTimeout)
	_ = s.store.WaitIndexed(ctx)
	cancel()
	was := s.outcome(h)
	commit := x.req.CommitOrRollback == wire.SysTranCommit
	if was == wasGivenUp && commit {
		x.carryOut()
		return
	}
	x.decided()
	switch {
	case commit == (was == wasCommitted):
		x.answer(wire.RespSuccess, "")
	case commit:
		x.answer(wire.RespSystemError, "the transaction has been rolled back already")
	default:
		x.answer(wire.RespSystemError, "the transaction has been committed already")
	}
}
