package msgtrace

import "sync"

// entry is a context: one or more encoded records, and behind them the keys to
// find them by, with a blank before each.
type entry struct {
	b    []byte
	body int // where the keys begin
}

func (e *entry) addKey(k string) {
	if k != "" {
		e.b = append(append(e.b, ' '), k...)
	}
}

func (e *entry) records() []byte { return e.b[:e.body] }
func (e *entry) keys() []byte    { return e.b[e.body:] }

// Limits of a trace message, those of Apache's dispatcher. Keys are a property,
// whose room ends at 32 KiB together with all others.
const (
	maxContexts = 10
	maxBody     = 128_000
	maxKeys     = 31_000
)

// Limits of what waits to be sent.
const (
	maxWaiting      = 10_000
	maxWaitingBytes = 8 << 20
)

// queue holds contexts until they are sent. Whatever finds it full is counted
// and gone.
type queue struct {
	ready chan struct{} // one slot: the first context came, or a full batch is there

	mu      sync.Mutex // guards all below
	list    []entry
	head    int // of list
	bytes   int
	closed  bool
	dropped int64
	open    int // taken, and not known yet whether they arrived
}

func (q *queue) init() { q.ready = make(chan struct{}, 1) }

// put adds e if there is room.
func (q *queue) put(e entry) {
	q.mu.Lock()
	n := len(q.list) - q.head
	if q.closed || n >= maxWaiting || q.bytes+len(e.b) > maxWaitingBytes || e.body > maxBody {
		q.dropped++
		q.mu.Unlock()
		return
	}
	q.list = append(q.list, e)
	q.bytes += len(e.b)
	n++
	wake := n == 1 || q.full()
	q.mu.Unlock()
	if wake {
		select {
		case q.ready <- struct{}{}:
		default: // it is up already, or about to be
		}
	}
}

// full reports whether there is enough for a message; mu is held.
func (q *queue) full() bool {
	return len(q.list)-q.head >= maxContexts || q.bytes >= maxBody
}

// take moves what goes into one message to batch. Without all there must be
// enough for a full one.
func (q *queue) take(batch []entry, all bool) []entry {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !all && !q.full() {
		return batch
	}
	body, keys := 0, 0
	for len(batch) < maxContexts && q.head < len(q.list) {
		e := q.list[q.head]
		body, keys = body+e.body, keys+len(e.keys())
		if len(batch) > 0 && (body > maxBody || keys > maxKeys) {
			break
		}
		batch = append(batch, e)
		q.list[q.head] = entry{}
		q.head++
		q.bytes -= len(e.b)
	}
	q.open += len(batch)
	switch {
	case q.head == len(q.list):
		q.list, q.head = q.list[:0], 0
	case q.head >= 1024 && 2*q.head >= len(q.list):
		n := copy(q.list, q.list[q.head:])
		clear(q.list[n:])
		q.list, q.head = q.list[:n], 0
	}
	return batch
}

func (q *queue) empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.head == len(q.list)
}

// close lets nothing in any more.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
}

// discard drops what is left.
func (q *queue) discard() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.dropped += int64(len(q.list) - q.head)
	q.list, q.head, q.bytes = nil, 0, 0
}

// arrived settles contexts that were taken.
func (q *queue) arrived(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.open -= n
}

// lose settles contexts that were taken and did not arrive.
func (q *queue) lose(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.open -= n
	q.dropped += int64(n)
}

// lost is how many contexts are known to have been dropped.
func (q *queue) lost() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.dropped
}

// missing also counts those of which nothing is known.
func (q *queue) missing() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.dropped + int64(q.open)
}
