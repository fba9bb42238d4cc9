package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync/atomic"
)

// A nullServer is a name server and a broker with one topic that answers at
// once and stores nothing: against it a client's own speed is measured, against
// a real broker that of both. It speaks JSON headers, the default of both
// clients, and counts messages in place of storing them. Like a good server it
// writes its answers when it has read all that has come in.
type nullServer struct {
	broker string // its address, for the route
	stored atomic.Int64
	pull   nullPull
}

// nullMain is the process: it serves the name server's and the broker's
// addresses until it is killed.
func nullMain(args []string) error {
	if len(args) != 4 {
		return errors.New("the addresses of name server and broker, and count and size of messages to consume are needed")
	}
	count, err1 := strconv.ParseInt(args[2], 10, 64)
	size, err2 := strconv.Atoi(args[3])
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	s := &nullServer{broker: args[1]}
	s.pull.init(count, size)
	failed := make(chan error)
	for _, addr := range args[:2] {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			return err
		}
		go func() { failed <- s.accept(l) }()
	}
	fmt.Println("null broker ready")
	return <-failed
}

func (s *nullServer) accept(l net.Listener) error {
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer conn.Close()
			_ = s.serve(conn) // the client notices
		}()
	}
}

const nullBuffer = 256 << 10

// serve reads requests until the connection ends.
func (s *nullServer) serve(conn net.Conn) error {
	in := bufio.NewReaderSize(conn, nullBuffer)
	var out, spare []byte
	for {
		if len(out) > 0 && (in.Buffered() == 0 || len(out) > nullBuffer) {
			if _, err := conn.Write(out); err != nil {
				return err
			}
			out = out[:0]
		}
		b, err := in.Peek(8)
		if err != nil {
			return err
		}
		total, head := int(binary.BigEndian.Uint32(b)), int(binary.BigEndian.Uint32(b[4:]))
		if head>>24 != 0 || head > total-4 {
			return fmt.Errorf("lengths %d, %#x: only JSON headers are understood", total, head)
		}
		size := 4 + total
		frame := spare
		if size <= nullBuffer {
			if frame, err = in.Peek(size); err != nil { // no copy
				return err
			}
		} else {
			frame = append(frame[:0], make([]byte, size)...)
			if _, err := io.ReadFull(in, frame); err != nil {
				return err
			}
			spare = frame
		}
		if out, err = s.answer(out, frame[8:8+head], frame[8+head:]); err != nil {
			return err
		}
		if size <= nullBuffer {
			if _, err := in.Discard(size); err != nil {
				return err
			}
		}
	}
}

// Request codes that need more than "done".
const (
	reqSend           = 10
	reqPull           = 11
	reqQueryOffset    = 14
	reqMaxOffset      = 30
	reqMinOffset      = 31
	reqHeartbeat      = 34
	reqConsumerIDs    = 38
	reqRoute          = 105
	reqSendV2         = 310
	reqSendBatch      = 320
	flagOneway        = 2
	nullOffsetID      = "7F00000100002A9F0000000000000004"
	codeNoOffset      = 22
	codeNotFoundTopic = 17
)

// answer appends the answer to a request, unless it wants none.
func (s *nullServer) answer(out, head, body []byte) ([]byte, error) {
	code, ok1 := number(head, `"code":`)
	opaque, ok2 := number(head, `"opaque":`)
	flag, ok3 := number(head, `"flag":`)
	if !ok1 || !ok2 || !ok3 {
		return out, fmt.Errorf("a header without code, opaque or flag: %q", head)
	}
	a := reply{out: out, opaque: opaque, silent: flag&flagOneway != 0}
	switch code {
	case reqSend, reqSendV2:
		a.begin(0)
		a.sent(head, s.stored.Add(1)-1, 1)
	case reqSendBatch:
		n := batched(body)
		a.begin(0)
		a.sent(head, s.stored.Add(int64(n))-int64(n), n)
	case reqRoute:
		if !bytes.Contains(head, []byte(`"`+topic+`"`)) {
			a.begin(codeNotFoundTopic)
			break
		}
		a.begin(0)
		a.body = fmt.Appendf(nil, `{"brokerDatas":[{"brokerAddrs":{"0":%q},"brokerName":"null","cluster":"null"}],`+
			`"queueDatas":[{"brokerName":"null","perm":6,"readQueueNums":%d,"topicSysFlag":0,"writeQueueNums":%[2]d}]}`, s.broker, queues)
	case reqMaxOffset:
		// The topic's count is that of queue 0, unless there is something to
		// consume.
		n := s.pull.each
		if q, _ := number(head, `"queueId":"`); q == 0 && n == 0 {
			n = s.stored.Load()
		}
		a.begin(0)
		a.number("offset", n)
	case reqMinOffset:
		a.begin(0)
		a.number("offset", 0)
	case reqQueryOffset:
		a.begin(codeNoOffset)
	case reqHeartbeat:
		s.pull.join(body)
		a.begin(0)
	case reqConsumerIDs:
		a.begin(0)
		a.body = s.pull.members()
	case reqPull:
		s.pull.answer(&a, head)
	default:
		a.begin(0)
	}
	return a.end(), nil
}

// number finds a number behind a name. Quotes inside of JSON strings are
// escaped, so that the name cannot be part of one.
func number(head []byte, name string) (n int64, ok bool) {
	i := bytes.Index(head, []byte(name))
	if i < 0 {
		return 0, false
	}
	for i += len(name); i < len(head) && '0' <= head[i] && head[i] <= '9'; i++ {
		n, ok = n*10+int64(head[i]-'0'), true
	}
	return n, ok
}

// batched is how many messages a batch has: each begins with its length.
func batched(body []byte) (n int) {
	for len(body) >= 4 {
		size := int(binary.BigEndian.Uint32(body))
		if size < 4 || size > len(body) {
			break
		}
		body = body[size:]
		n++
	}
	return n
}

// reply appends one frame. If it is silent, or was never begun, there is none.
type reply struct {
	out    []byte
	opaque int64
	silent bool
	at     int // where the frame begins in out
	begun  bool
	fields bool
	body   []byte
	patch  func(body []byte) // changes the frame's copy of body
}

func (a *reply) begin(code int64) {
	if a.silent {
		return
	}
	a.begun, a.at = true, len(a.out)
	a.out = append(a.out, "\x00\x00\x00\x00\x00\x00\x00\x00"+`{"code":`...)
	a.out = strconv.AppendInt(a.out, code, 10)
	a.out = append(a.out, `,"flag":1,"language":"JAVA","opaque":`...)
	a.out = strconv.AppendInt(a.out, a.opaque, 10)
	a.out = append(a.out, `,"serializeTypeCurrentRPC":"JSON","version":401,"extFields":{`...)
}

// text begins a field; its value follows.
func (a *reply) text(name string) {
	if a.fields {
		a.out = append(a.out, ',')
	}
	a.fields = true
	a.out = append(append(append(a.out, '"'), name...), `":"`...)
}

func (a *reply) number(name string, n int64) {
	if !a.begun {
		return
	}
	a.text(name)
	a.out = append(strconv.AppendInt(a.out, n, 10), '"')
}

// sent answers a send of n messages, which got the offsets from first on.
func (a *reply) sent(head []byte, first int64, n int) {
	if !a.begun {
		return
	}
	a.text("msgId")
	for i := range n {
		if i > 0 {
			a.out = append(a.out, ',')
		}
		a.out = append(a.out, nullOffsetID...)
	}
	a.out = append(a.out, '"')
	queue, ok := number(head, `"queueId":"`)
	if !ok {
		queue, _ = number(head, `"e":"`) // the short name
	}
	a.number("queueId", queue)
	a.number("queueOffset", first)
}

func (a *reply) end() []byte {
	if !a.begun {
		return a.out
	}
	a.out = append(a.out, "}}"...)
	head := len(a.out) - a.at - 8
	binary.BigEndian.PutUint32(a.out[a.at:], uint32(4+head+len(a.body)))
	binary.BigEndian.PutUint32(a.out[a.at+4:], uint32(head))
	a.out = append(a.out, a.body...)
	if a.patch != nil {
		a.patch(a.out[len(a.out)-len(a.body):])
	}
	return a.out
}
