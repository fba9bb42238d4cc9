package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"
)

// startNull serves on a free address.
func startNull(t *testing.T, toConsume int64) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &nullServer{broker: l.Addr().String()}
	s.pull.init(toConsume, 100)
	done := make(chan error)
	go func() { done <- s.accept(l) }()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return s.broker
}

func TestNullCounts(t *testing.T) {
	addr := startNull(t, 0)
	b := &broker{addr: addr, namesrv: addr, queues: queues}
	if err := b.createTopic(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := call(addr, reqRoute, map[string]string{"topic": "Other"}); err == nil {
		t.Error("a route of a topic that does not exist")
	}
	fields, _, err := call(addr, reqSendV2, map[string]string{"e": "5", "b": topic})
	if err != nil || fields["queueId"] != "5" || fields["queueOffset"] != "0" || fields["msgId"] != nullOffsetID {
		t.Errorf("send: %v, %v", fields, err)
	}
	item := binary.BigEndian.AppendUint32(nil, 20)
	item = append(item, make([]byte, 16)...)
	batch := append(append(append([]byte(nil), item...), item...), item...)
	fields, _, err = callBody(addr, reqSendBatch, map[string]string{"e": "0"}, batch)
	if err != nil || fields["queueOffset"] != "1" || strings.Count(fields["msgId"], ",") != 2 {
		t.Errorf("batch: %v, %v", fields, err)
	}
	if n, err := b.stored(); n != 4 || err != nil {
		t.Errorf("%d are stored, %v; want 4", n, err)
	}
}

// Requests that come in one piece are answered in one piece; those that want
// no answer have none; a large one is no problem.
func TestNullFrames(t *testing.T) {
	conn, err := net.Dial("tcp", startNull(t, 0))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	var out []byte
	for opaque, flag := range []int{0, 2, 0, 2, 0} {
		head := fmt.Sprintf(`{"code":310,"flag":%d,"language":"GO","opaque":%d,"extFields":{"i":"\"opaque\":77","e":"1"}}`, flag, opaque)
		size := []int{10, 10, 2 * nullBuffer, 10, 10}[opaque]
		out = binary.BigEndian.AppendUint32(out, uint32(4+len(head)+size))
		out = binary.BigEndian.AppendUint32(out, uint32(len(head)))
		out = append(append(out, head...), make([]byte, size)...)
	}
	go func() { _, _ = conn.Write(out) }()
	for want := range 5 {
		if want%2 == 1 {
			continue
		}
		var size [8]byte
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			t.Fatal(err)
		}
		rest := make([]byte, binary.BigEndian.Uint32(size[:])-4)
		if _, err := io.ReadFull(conn, rest); err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf(`"opaque":%d,`, want)
		if offset := fmt.Sprintf(`"queueOffset":"%d"`, want); !strings.Contains(string(rest), text) || !strings.Contains(string(rest), offset) {
			t.Errorf("answer %s, want %s and %s", rest, text, offset)
		}
	}
	bad := []byte{0, 0, 0, 8, 1, 0, 0, 4, 0, 0, 0, 0}
	if _, err := conn.Write(bad); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(bad); err == nil {
		t.Error("a binary header is answered")
	}
}

func TestNullPull(t *testing.T) {
	addr := startNull(t, queues*50)
	if _, body, err := call(addr, reqConsumerIDs, nil); err != nil || body != `{"consumerIdList":[]}` {
		t.Errorf("members %q, %v", body, err)
	}
	if _, _, err := callBody(addr, reqHeartbeat, nil, []byte(`{"clientID":"c1","x":1}`)); err != nil {
		t.Error(err)
	}
	if _, body, err := call(addr, reqConsumerIDs, nil); err != nil || body != `{"consumerIdList":["c1"]}` {
		t.Errorf("members %q, %v", body, err)
	}
	for _, tt := range []struct{ from, most, want int }{{0, 32, 32}, {32, 32, 18}, {49, 100, 1}, {3, 5, 5}} {
		fields, body, err := call(addr, reqPull, map[string]string{
			"queueId": "3", "queueOffset": strconv.Itoa(tt.from), "maxMsgNums": strconv.Itoa(tt.most),
		})
		if err != nil || fields["nextBeginOffset"] != strconv.Itoa(tt.from+tt.want) || fields["maxOffset"] != "50" {
			t.Errorf("pull from %d: %v, %v", tt.from, fields, err)
			continue
		}
		n := 0
		for b := []byte(body); len(b) > 0; n++ {
			if q, at := binary.BigEndian.Uint32(b[queueAt:]), binary.BigEndian.Uint64(b[offsetAt:]); q != 3 || at != uint64(tt.from+n) {
				t.Errorf("record %d is at %d of queue %d", n, at, q)
			}
			b = b[binary.BigEndian.Uint32(b):]
		}
		if n != tt.want {
			t.Errorf("pull from %d: %d records, want %d", tt.from, n, tt.want)
		}
	}
}
