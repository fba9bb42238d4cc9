package testbroker

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Strict makes mistakes that go unnoticed with a real cluster, or show as
// strange effects much later, fail the test when the cluster is closed:
//
//   - a request about a topic that does not exist, unless [AutoCreate] is on
//     (retry and dead-letter topics may be missing),
//   - a request code that the server does not know,
//   - members of a consumer group that subscribe to different things,
//   - two clients with the same id,
//   - a producer or consumer that was not closed before its client of
//     [Cluster.Client] was by the end of the test,
//   - a client that is still connected when the cluster is closed.
//
// A cluster of [Start] returns them from [Cluster.Close].
func Strict() Option { return func(c *config) { c.strict = true } }

// strict watches the requests of clients for [Strict].
type strict struct {
	autoCreate bool

	mu      sync.Mutex // guards all below
	found   []string
	conns   map[*tapConn]*peer
	ids     map[clientAt]*tapConn        // which connection the last heartbeat came over
	wants   map[string]map[string]string // by group and client: what it subscribes to
	changed chan struct{}                // closed and replaced when a connection ends
}

// clientAt is a client id at a server: a client has one connection to each.
type clientAt struct{ server, id string }

// peer is who is at the other end of a connection.
type peer struct {
	broker bool                // it registers topics
	id     string              // "" until its first heartbeat
	roles  map[string]struct{} // "producer group" or "consumer group"
}

func newStrict(autoCreate bool) *strict {
	return &strict{
		autoCreate: autoCreate, conns: map[*tapConn]*peer{}, ids: map[clientAt]*tapConn{},
		wants: map[string]map[string]string{}, changed: make(chan struct{}),
	}
}

// report notes a finding once. mu is held.
func (s *strict) report(format string, args ...any) {
	what := "strict: " + fmt.Sprintf(format, args...)
	if !slices.Contains(s.found, what) {
		s.found = append(s.found, what)
	}
}

// asked is told of each request.
func (s *strict) asked(c *tapConn, call *Call) {
	if call.ToClient {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.conns[c]
	if p == nil {
		select {
		case <-c.closed:
			return
		default:
		}
		p = &peer{roles: map[string]struct{}{}}
		s.conns[c] = p
	}
	switch call.Op {
	case RegisterBroker:
		p.broker = true
	case Heartbeat:
		if h, err := wire.DecodeHeartbeat(slices.Clone(call.Body())); err == nil {
			s.heartbeat(c, p, call.Server, &h)
		}
	case UnregisterClient:
		id, _ := call.Field("clientID")
		if g, _ := call.Field("producerGroup"); g != "" {
			delete(p.roles, "producer "+g)
		}
		if g, _ := call.Field("consumerGroup"); g != "" {
			delete(p.roles, "consumer "+g)
			delete(s.wants[g], id)
		}
	}
}

func (s *strict) heartbeat(c *tapConn, p *peer, server string, h *wire.Heartbeat) {
	at := clientAt{server, h.ClientID}
	// A client that has connected anew does not come back over its old
	// connection; two clients take turns.
	if p.id == h.ClientID && s.ids[at] != c && s.ids[at] != nil {
		s.report("two clients have the id %s; give one of them another instance name", h.ClientID)
	}
	p.id = h.ClientID
	s.ids[at] = c
	for _, g := range h.Producers {
		p.roles["producer "+g] = struct{}{}
	}
	for _, g := range h.Consumers {
		p.roles["consumer "+g.Group] = struct{}{}
		if h.WithoutSub {
			continue
		}
		if s.wants[g.Group] == nil {
			s.wants[g.Group] = map[string]string{}
		}
		mine := wanted(g.Subscriptions)
		s.wants[g.Group][h.ClientID] = mine
		for _, id := range slices.Sorted(maps.Keys(s.wants[g.Group])) {
			if other := s.wants[g.Group][id]; other != mine {
				a, b := min(mine, other), max(mine, other)
				s.report("members of the group %s subscribe to different things: {%s} and {%s}", g.Group, a, b)
			}
		}
	}
}

// wanted is what subscriptions mean, as text.
func wanted(subs []wire.Subscription) string {
	var out []string
	for _, sub := range subs {
		if !strings.HasPrefix(sub.Topic, wire.RetryPrefix) {
			out = append(out, sub.Topic+": "+sub.Expr)
		}
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// answered is told of each answer.
func (s *strict) answered(call *Call, f *wire.Frame) {
	if call.ToClient {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch f.Code {
	case wire.RespRequestCodeNotSupported:
		s.report("%s does not know the request code %d", call.Server, call.Code)
	case wire.RespTopicNotExist:
		t := call.Topic
		if !s.autoCreate && t != "" && !wire.IsSystemTopic(t) && !strings.HasPrefix(t, wire.RetryPrefix) && !strings.HasPrefix(t, wire.DLQPrefix) {
			s.report("there is no topic %q; create it with the option Topic, or is it misspelt?", t)
		}
	}
}

// gone is told of each connection that ends.
func (s *strict) gone(c *tapConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.conns[c]
	if p == nil {
		return
	}
	delete(s.conns, c)
	if at := (clientAt{c.t.server, p.id}); s.ids[at] == c {
		delete(s.ids, at)
		for role := range p.roles {
			if g, ok := strings.CutPrefix(role, "consumer "); ok {
				delete(s.wants[g], p.id)
			}
		}
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// clientEnds is told that a client is about to be closed by the end of the
// test: its roles should have been before.
func (s *strict) clientEnds(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.conns {
		if p.id == id {
			for _, role := range slices.Sorted(maps.Keys(p.roles)) {
				s.report("the %s was not closed", role)
			}
		}
	}
}

// farewell is how long connections may take to end after their clients have.
const farewell = time.Second

// verdict is everything that was found. It waits a moment for clients that
// were just closed.
func (s *strict) verdict() []string {
	late := time.NewTimer(farewell)
	defer late.Stop()
	for {
		s.mu.Lock()
		left, changed := s.left(), s.changed
		s.mu.Unlock()
		if len(left) == 0 {
			break
		}
		select {
		case <-changed:
			continue
		case <-late.C:
		}
		break
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, who := range s.left() {
		s.report("the client %s is still connected; close it before the cluster", who)
	}
	return s.found
}

// left are the clients that are connected. mu is held.
func (s *strict) left() []string {
	var all []string
	for c, p := range s.conns {
		switch {
		case p.broker:
		case p.id != "":
			all = append(all, p.id)
		default:
			all = append(all, "at "+c.RemoteAddr().String())
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
