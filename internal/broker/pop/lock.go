package pop

import "sync"

// queueKey is one queue as one group reads it.
type queueKey struct {
	topic, group string
	queue        int32
}

// locks are the queues that somebody reads just now: of two POPs that come
// together one passes over the queue, so that no message is given out twice.
// Whoever passes over leaves a note, and the other one sees to it that those who
// wait look again.
type locks struct {
	mu   sync.Mutex // guards busy; nothing is called under it
	busy map[queueKey]bool
}

// try takes a queue.
func (l *locks) try(k queueKey) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, taken := l.busy[k]; taken {
		l.busy[k] = true
		return false
	}
	l.busy[k] = false
	return true
}

// taken tells whether somebody has a queue. He will see that it was asked for.
func (l *locks) taken(k queueKey) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, taken := l.busy[k]
	if taken {
		l.busy[k] = true
	}
	return taken
}

// release gives a queue back. It tells whether somebody else wanted it.
func (l *locks) release(k queueKey) (wanted bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	wanted = l.busy[k]
	delete(l.busy, k)
	return wanted
}
