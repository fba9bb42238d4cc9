package broker

import (
	"fmt"
	"sync"
	"time"

	"github.com/gorocketmq/rocketmq/internal/broker/clients"
	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Offsets that the members of a group have: resetting them, which is
// INVOKE_BROKER_TO_RESET_OFFSET (222) as in 4.9 (useServerSideResetOffset=false),
// and INVOKE_BROKER_TO_GET_CONSUMER_STATUS (223). Sends
// RESET_CONSUMER_CLIENT_OFFSET (220) and GET_CONSUMER_STATUS_FROM_CLIENT (221).
//
// Fields read: topic, group, timestamp, isForce; 223: topic, group, clientAddr,
// which is a client id.
//
// Answers: 0, to 222 with the new offsets, to 223 with those that the members
// have told within 5 s; 1 malformed, a member that is too old, 222: no topic, a
// group that has no offset in some queue, 223: nobody online; 206 222: nobody
// online, mqadmin then commits the offsets itself.

// firstWithReset is V3_0_7_SNAPSHOT: older clients do not know the requests.
const firstWithReset = 28

// statusTimeout is how long members may take to answer 221.
const statusTimeout = 5 * time.Second

// pushReset tells all members where to go on. Nothing is stored here: they commit.
func (b *Broker) pushReset(r *remoting.Request, req *wire.ResetOffsetRequest) {
	t := b.topics.Lookup(req.Topic)
	if t == nil {
		r.Reply(wire.RespSystemError, "[reset-offset] reset offset failed, no topic in this broker. topic="+req.Topic, nil, nil)
		return
	}
	table := wire.OffsetTable{Offsets: map[wire.MessageQueue]int64{}}
	for id := range t.WriteQueues {
		had, known := b.offsets.Offset([]byte(req.Group), []byte(req.Topic), id)
		if !known {
			r.Reply(wire.RespSystemError, "the consumer group <"+req.Group+"> has no offset of "+req.Topic, nil, nil)
			return
		}
		off, err := b.resetTarget(&wire.ResetOffsetRequest{Topic: req.Topic, Timestamp: req.Timestamp}, id)
		if malformed(r, err) {
			return
		}
		if off = max(off, 0); !req.Force {
			off = min(off, had)
		}
		table.Offsets[wire.MessageQueue{Topic: t.Name, Broker: b.cfg.Name, QueueID: id}] = off
	}
	g, online := b.clients.Group(req.Group)
	if !online {
		r.Reply(wire.RespConsumerNotOnline, fmt.Sprintf("Consumer not online, so can not reset offset, Group: %s Topic: %s Timestamp: %d",
			req.Group, req.Topic, req.Timestamp), nil, nil)
		return
	}
	body := table.AppendJSON(nil)
	cmd := &wire.Command{
		Code: wire.ReqResetConsumerClientOffset, Body: body,
		Ext: &wire.ResetOffsetRequest{Topic: req.Topic, Group: req.Group, Timestamp: req.Timestamp},
	}
	if r.Frame().Language == wire.LanguageCPP {
		cmd.Body = table.AppendListJSON(nil)
	}
	for _, m := range g.Members {
		if m.Version < firstWithReset {
			r.Reply(wire.RespSystemError, tooOld(m), nil, nil)
			return
		}
		if err := m.Conn.(*remoting.Conn).CallOneway(cmd); err != nil {
			b.log.Warn("member not told of the reset of its offsets", "group", req.Group, "client", m.ID, "err", err)
		}
	}
	r.Reply(wire.RespSuccess, "", nil, body)
}

func tooOld(c clients.Client) string {
	return fmt.Sprintf("the client does not support this feature. client=%s version=%d", c.ID, c.Version)
}

func (b *Broker) handleConsumerStatus(r *remoting.Request) {
	var req wire.ConsumerStatusRequest
	if malformed(r, req.DecodeExt(r.Frame())) {
		return
	}
	g, online := b.clients.Group(req.Group)
	if !online {
		r.Reply(wire.RespSystemError, "No Any Consumer online in the consumer group: ["+req.Group+"]", nil, nil)
		return
	}
	for _, m := range g.Members {
		if m.Version < firstWithReset {
			r.Reply(wire.RespSystemError, tooOld(m), nil, nil)
			return
		}
	}
	all := &statuses{
		replier: r.Replier(), left: 1,
		body: wire.ConsumerStatus{Clients: map[string]map[wire.MessageQueue]int64{}},
		cmd:  &wire.Command{Code: wire.ReqGetConsumerStatusFromClient, Ext: &wire.ConsumerStatusRequest{Topic: req.Topic, Group: req.Group}},
	}
	deadline := clock.Real().Now().Add(statusTimeout) // connections go by the machine's clock
	for _, m := range g.Members {
		if req.ClientAddr == "" || req.ClientAddr == m.ID {
			all.ask(m, deadline)
		}
	}
	all.end()
}

// statuses collects the answers of members. No goroutine waits for them: the
// reader of the last one's connection answers.
type statuses struct {
	cmd     *wire.Command
	replier remoting.Replier

	mu   sync.Mutex // guards the two below
	body wire.ConsumerStatus
	left int
}

func (s *statuses) ask(m clients.Client, deadline time.Time) {
	s.mu.Lock()
	s.left++
	s.mu.Unlock()
	x := &statusOf{s, m.ID}
	if _, err := m.Conn.(*remoting.Conn).Start(x, deadline, remoting.Try); err != nil {
		x.Done(nil, err)
	}
}

func (s *statuses) end() {
	s.mu.Lock()
	s.left--
	last := s.left == 0
	s.mu.Unlock()
	if last {
		s.replier.Reply(wire.RespSuccess, "", nil, s.body.AppendJSON(nil))
	}
}

// statusOf is the question for one member.
type statusOf struct {
	s  *statuses
	id string
}

// AppendFrame implements remoting.Exchange.
func (x *statusOf) AppendFrame(dst []byte, opaque int32) []byte {
	return x.s.cmd.Append(dst, wire.Head{Opaque: opaque})
}

// Done implements remoting.Exchange. Who does not answer is left out.
func (x *statusOf) Done(f *wire.Frame, err error) {
	if err == nil && f.Code == wire.RespSuccess {
		if st, err := wire.DecodeConsumerStatus(f.Body); err == nil {
			x.s.mu.Lock()
			x.s.body.Clients[x.id] = st.Queues
			x.s.mu.Unlock()
		}
	}
	x.s.end()
}
