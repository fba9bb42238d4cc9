package consume

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/client"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Pulling as Java's push consumer does it: up to 32 messages, waiting up to
// 15 s at the broker, and at most 30 s in all.
const (
	pullBatch    = 32
	pullSuspend  = 15 * time.Second
	pullDeadline = 30 * time.Second

	backoffFirst   = time.Second
	backoffMost    = 5 * time.Second
	backoffFlow    = 20 * time.Millisecond // code 215, as Java
	emptyAtOnce    = 50 * time.Millisecond // an empty answer sooner than this was no long poll
	emptiesAllowed = 3
	emptyFirst     = 100 * time.Millisecond
	// replicaPause is how long a replica that failed is not asked again,
	// whatever the master suggests.
	replicaPause = 30 * time.Second
)

// pullRequest is the one pull a queue has on its way.
type pullRequest struct {
	q *queue
	h wire.PullRequest
}

var _ remoting.Exchange = (*pullRequest)(nil)

// AppendFrame implements [remoting.Exchange].
func (x *pullRequest) AppendFrame(dst []byte, opaque int32) []byte {
	h := x.q.c.head
	h.Code, h.Opaque = wire.ReqPullMessage, opaque
	if x.h.SysFlag&wire.PullCommitOffset != 0 && (x.q.gone.Load() || !x.q.tell(x.h.CommitOffset)) {
		// A newer offset was encoded after this pull had been made ready, or
		// the queue was given up and its last commit may be on the wire. What
		// comes last counts at the broker, so this one keeps silent.
		x.h.SysFlag &^= wire.PullCommitOffset
	}
	e := wire.Begin(dst, h)
	x.h.EncodeExt(&e)
	return e.Finish(nil)
}

// Done implements [remoting.Exchange]. It runs on the connection's reader.
func (x *pullRequest) Done(f *wire.Frame, err error) {
	q := x.q
	if err != nil {
		q.pullFailed(err, 0)
		return
	}
	switch f.Code {
	case wire.RespSuccess, wire.RespPullNotFound, wire.RespPullRetryImmediately, wire.RespPullOffsetMoved:
		var h wire.PullResponse
		if err := h.DecodeExt(f); err != nil {
			q.pullFailed(fmt.Errorf("answer to a pull: %w", err), 0)
			return
		}
		switch f.Code {
		case wire.RespSuccess:
			q.pulled(&h, bytes.Clone(f.Body))
		case wire.RespPullOffsetMoved:
			q.moved(&h)
		default:
			q.pulledNothing(&h)
		}
	default:
		q.refused(f)
	}
}

// startPull sends the next pull unless the queue is busy with one, gone, or
// full. It does not block: it is called by connections' readers and workers.
func (q *queue) startPull() {
	q.mu.Lock()
	if q.phase != phaseIdle {
		q.mu.Unlock()
		return
	}
	if q.topic.paused.Load() {
		q.phase = phasePaused // unpause looks at it after the pause has ended
		q.mu.Unlock()
		return
	}
	if !q.hasRoomLocked() {
		q.phase = phaseFull
		q.full.Store(true)
		// Whoever made room before the flag was set has not seen it.
		if !q.hasRoomLocked() {
			q.mu.Unlock()
			return
		}
		q.phase = phaseIdle
		q.full.Store(false)
	}
	addr := q.topic.address(q.key.Broker, q.source)
	if q.conn == nil || q.addr != addr || q.conn.Err() != nil {
		q.phase = phaseConnecting
		q.mu.Unlock()
		q.c.connect(q, addr)
		return
	}
	conn := q.conn
	q.phase = phasePulling
	q.pulls++
	n := q.pulls
	q.fillPullLocked()
	q.token = remoting.Token{}
	q.sentAt = time.Now()
	deadline := q.sentAt.Add(pullDeadline)
	q.mu.Unlock()

	token, err := conn.Start(&q.pull, deadline, remoting.Try)
	if err != nil {
		q.pullFailed(err, n)
		return
	}
	q.mu.Lock()
	if q.pulls == n {
		q.token = token
	}
	gone := q.phase == phaseGone
	q.mu.Unlock()
	if gone {
		conn.Cancel(token) // stop came too early to know the token
	}
}

func (q *queue) fillPullLocked() {
	t := q.topic
	h := &q.pull.h
	q.pull.q = q
	*h = wire.PullRequest{
		Group: q.c.groupWire, Topic: t.wireBytes, QueueID: int32(q.key.ID), Offset: q.next,
		MaxMsgs: pullBatch, SysFlag: wire.PullSuspend, SuspendMillis: pullSuspend.Milliseconds(),
		SubVersion: t.version, ExpressionType: t.exprType,
	}
	if q.c.lite != nil && q.c.lite.given != nil {
		// The broker does not know us, so the pull says what is wanted.
		h.SysFlag |= wire.PullSubscription
		h.Subscription = t.exprBytes
	}
	if commit := q.commitLocked(); commit > 0 && !q.c.byHand() && q.source == client.MasterID && q.c.local == nil {
		h.CommitOffset = commit
		h.SysFlag |= wire.PullCommitOffset
	}
}

// pulled takes messages.
func (q *queue) pulled(h *wire.PullResponse, body []byte) {
	asked := q.pull.h.Offset
	p, resume, err := decodePage(q, body, h.OffsetDelta, q.c.publicName, q.topic.keep)
	next := h.NextOffset
	if err != nil {
		next = resume // what follows the last message that could be read
		q.c.log.Error("pulled messages cannot be read, trying again behind the last good one",
			"queue", q.key, "offset", asked, "err", err)
	}
	if next = max(next, resume); next <= asked && err == nil {
		err = fmt.Errorf("the broker answered a pull from offset %d with next offset %d", asked, h.NextOffset)
	}
	n := len(p.views)
	size := int64(0)
	for i := range p.meta {
		size += int64(p.meta[i].size)
	}
	q.mu.Lock()
	if q.phase == phaseGone {
		q.mu.Unlock()
		return
	}
	q.answeredLocked(h)
	if n > 0 {
		if q.mark == q.next {
			q.mark = p.views[0].Offset
		}
		q.next = max(q.next, next)
		q.pages = append(q.pages, p)
		q.taken += int64(n)
		q.topic.stats.gotPage(n, time.Since(q.sentAt))
		q.count.Add(int64(n))
		q.bytes.Add(size)
	} else {
		q.goOnLocked(max(q.next, next))
	}
	q.mu.Unlock()
	if n > 0 {
		q.topic.dispatch(p)
	}
	if err != nil {
		q.pullFailed(err, 0)
		return
	}
	q.becomeIdle()
}

// goOnLocked moves on to an offset with no message on the way that is wanted.
func (q *queue) goOnLocked(next int64) {
	if q.mark == q.next {
		q.mark = next // all before it was committed, and there is nothing to be done
	}
	q.next = next
}

// answeredLocked notes what every good answer says.
func (q *queue) answeredLocked(h *wire.PullResponse) {
	q.lastPull, q.lastErr, q.failures, q.unmoved = time.Now(), nil, 0, false
	q.source, q.max = h.SuggestBrokerID, h.MaxOffset
	if q.source != client.MasterID && q.lastPull.Before(q.noReplica) {
		q.source = client.MasterID
	}
}

// replicaLocked tells whether the broker that is asked now is not the one that
// would be asked for want of a suggestion: the master, or what stands in for it.
func (q *queue) replicaLocked() bool {
	return q.source != client.MasterID && q.topic.address(q.key.Broker, q.source) != q.topic.master(q.key.Broker)
}

// becomeIdle goes on after an answer, on the connection's reader.
func (q *queue) becomeIdle() {
	q.mu.Lock()
	if q.phase == phaseGone {
		q.mu.Unlock()
		return
	}
	q.phase, q.empties = phaseIdle, 0
	q.mu.Unlock()
	q.startPull()
}

// pulledNothing takes an answer without messages: nothing new, or nothing that
// the subscription wants. Both may move the offset on.
func (q *queue) pulledNothing(h *wire.PullResponse) {
	q.mu.Lock()
	if q.phase == phaseGone {
		q.mu.Unlock()
		return
	}
	asked := q.source
	q.answeredLocked(h)
	progress := h.NextOffset > q.next || q.source != asked
	q.goOnLocked(max(q.next, h.NextOffset))
	if progress || time.Since(q.sentAt) >= emptyAtOnce {
		q.empties = 0
	} else {
		q.empties++
	}
	// A broker that does not hold pulls must not be asked in a tight loop.
	wait := time.Duration(0)
	if over := q.empties - emptiesAllowed; over > 0 {
		wait = min(emptyFirst<<min(over-1, 10), backoffFirst)
	}
	if wait > 0 {
		q.phase = phaseWaiting
	} else {
		q.phase = phaseIdle
	}
	q.mu.Unlock()
	if wait > 0 {
		q.c.timers.after(wait, q.waited)
		return
	}
	q.startPull()
}

// moved takes code 21: the offset is outside the queue's range, or an operator
// has reset it. The master's word counts, forwards and backwards. Cached
// messages are of the past then; their queue is replaced by a fresh one.
func (q *queue) moved(h *wire.PullResponse) {
	q.mu.Lock()
	if q.phase == phaseGone {
		q.mu.Unlock()
		return
	}
	asked, same := q.pull.h.Offset, q.unmoved
	outside := &rocketmq.OffsetError{Queue: q.key, Asked: asked, Min: h.MinOffset, Max: h.MaxOffset}
	// A replica may be behind: what it lacks is not gone.
	if q.replicaLocked() || h.NextOffset < asked && q.topic.masterOnly(q.key.Broker) == "" {
		q.mu.Unlock()
		q.pullFailed(outside, 0)
		return
	}
	q.answeredLocked(h)
	q.trimLocked()
	// Within one queue the offset only grows, see tell.
	anew := len(q.pages) > 0 || h.NextOffset < q.next
	if !anew {
		q.goOnLocked(h.NextOffset)
		q.committed = -1 // say so at the next commit, also backwards
	}
	if !anew && h.NextOffset == asked {
		// A group that was reset while it was away is told of what it has
		// found out by itself. Once.
		q.unmoved = true
		q.mu.Unlock()
		if same {
			q.pullFailed(outside, 0)
			return
		}
		q.becomeIdle()
		return
	}
	q.mu.Unlock()
	q.c.log.Warn("the broker moved the offset", "queue", q.key, "asked", asked, "next", h.NextOffset, "min", h.MinOffset, "max", h.MaxOffset)
	if anew {
		q.c.replace(q, h.NextOffset)
		return
	}
	q.c.commitSoon()
	q.becomeIdle()
}

// refused takes any other answer.
func (q *queue) refused(f *wire.Frame) {
	err := error(&rocketmq.BrokerError{Op: "PULL_MESSAGE", Addr: q.address(), Code: rocketmq.Code(f.Code), Remark: string(f.Remark)})
	switch f.Code {
	case wire.RespSubscriptionNotExist, wire.RespSubscriptionNotLatest,
		wire.RespFilterDataNotExist, wire.RespFilterDataNotLatest:
		q.c.beatSoon() // the broker has not had our heartbeat
	case wire.RespTopicNotExist, wire.RespNotLeaderForQueue:
		q.c.rebalanceSoon()
	}
	q.pullFailed(err, 0)
}

func (q *queue) address() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.addr
}

// pullFailed backs off. A pull that was never started passes its number, so
// that a failure of the connection which has been told through Done already
// is not counted twice.
func (q *queue) pullFailed(err error, started uint64) {
	q.mu.Lock()
	if q.phase == phaseGone || started != 0 && (q.pulls != started || q.phase != phasePulling) {
		q.mu.Unlock()
		return
	}
	wait := min(backoffFirst<<min(q.failures, 10), backoffMost)
	q.failures++
	var be *rocketmq.BrokerError
	switch {
	case errors.Is(err, remoting.ErrGoAway):
		wait, q.conn = 0, nil // the broker restarts: elsewhere, or again
	case errors.Is(err, remoting.ErrBusy):
		wait = backoffFlow
	case errors.As(err, &be) && be.Code == rocketmq.CodeFlowControl:
		wait = backoffFlow
	}
	if q.source != client.MasterID {
		if q.replicaLocked() {
			wait = 0 // the master has it, too
			q.failures = 0
		}
		q.source, q.noReplica = client.MasterID, time.Now().Add(replicaPause)
	}
	broken := q.conn == nil || q.conn.Err() != nil
	q.phase, q.lastErr = phaseWaiting, err
	q.mu.Unlock()
	if q.c.cfg.Ordered && broken {
		q.c.locks.now(q.key.Broker) // a broker that was restarted has forgotten its locks
	}
	q.c.log.Debug("pull failed", "queue", q.key, "again_in", wait, "err", err)
	q.c.timers.after(wait, q.waited)
}

// waited ends a backoff.
func (q *queue) waited() {
	q.mu.Lock()
	if q.phase == phaseWaiting {
		q.phase = phaseIdle
	}
	q.mu.Unlock()
	q.startPull()
}

// connected ends phaseConnecting.
func (q *queue) connected(addr string, conn *remoting.Conn, err error) {
	if err != nil {
		q.pullFailed(err, 0)
		return
	}
	q.mu.Lock()
	again := q.conn != nil && q.conn != conn
	if q.phase == phaseConnecting {
		q.phase, q.conn, q.addr = phaseIdle, conn, addr
	}
	q.mu.Unlock()
	if q.c.cfg.Ordered && again {
		q.c.locks.now(q.key.Broker)
	}
	q.startPull()
}
