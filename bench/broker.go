package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A broker is one rmqbroker process with its name server and an empty store.
type broker struct {
	cmd     *exec.Cmd
	dir     string
	namesrv string
	addr    string
	done    chan error
}

// startBroker starts one and makes the topic.
func startBroker(ctx context.Context, s settings) (*broker, error) {
	dir, err := os.MkdirTemp(s.dir, "mqbench-")
	if err != nil {
		return nil, err
	}
	b := &broker{dir: dir, done: make(chan error, 1)}
	ports, err := freePorts(2)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	b.namesrv, b.addr = ports[0], ports[1]
	b.cmd = exec.CommandContext(ctx, s.rmqbroker, "-namesrv-listen", b.namesrv, "-listen", b.addr, "-store", dir+"/store")
	b.cmd.Stderr = os.Stderr
	out, err := b.cmd.StdoutPipe()
	if err == nil {
		err = b.cmd.Start()
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	ready := make(chan bool, 1)
	go func() {
		sc := bufio.NewScanner(out)
		up := false
		for sc.Scan() { // to the end: a full pipe would block the broker
			if !up && strings.HasPrefix(sc.Text(), "rmqbroker ready") {
				up = true
				ready <- true
			}
		}
		close(ready)
		b.done <- b.cmd.Wait()
	}()
	select {
	case ok := <-ready:
		if !ok {
			return nil, errors.Join(errors.New("rmqbroker ended before it was ready"), <-b.done, os.RemoveAll(dir))
		}
	case <-time.After(20 * time.Second):
		return nil, errors.Join(errors.New("rmqbroker did not become ready in 20 s"), b.cmd.Process.Kill(), <-b.done, os.RemoveAll(dir))
	}
	if err := b.createTopic(); err != nil {
		b.stop()
		return nil, err
	}
	return b, nil
}

func (b *broker) pid() int { return b.cmd.Process.Pid }

// stop ends the process and removes its data.
func (b *broker) stop() {
	_ = b.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-b.done:
	case <-time.After(15 * time.Second):
		_ = b.cmd.Process.Kill()
		<-b.done
	}
	_ = os.RemoveAll(b.dir)
}

// createTopic makes the topic and waits until the name server knows it, so
// that no client starts with queues of its own making.
func (b *broker) createTopic() error {
	const updateAndCreateTopic, getRouteInfoByTopic = 17, 105
	n := strconv.Itoa(queues)
	_, _, err := call(b.addr, updateAndCreateTopic, map[string]string{
		"topic": topic, "defaultTopic": "TBW102", "readQueueNums": n, "writeQueueNums": n, "perm": "6",
		"topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "false",
	})
	for end := time.Now().Add(10 * time.Second); err == nil; time.Sleep(5 * time.Millisecond) {
		var route string
		if _, route, err = call(b.namesrv, getRouteInfoByTopic, map[string]string{"topic": topic}); err == nil &&
			strings.Contains(route, `"writeQueueNums":`+n) {
			return nil
		}
		if time.Now().Before(end) {
			err = nil
		}
	}
	return fmt.Errorf("making topic %s: %w", topic, err)
}

// stored is the number of messages that the topic has had.
func (b *broker) stored() (total int64, err error) {
	const getMaxOffset = 30
	for q := range queues {
		fields, _, err := call(b.addr, getMaxOffset, map[string]string{"topic": topic, "queueId": strconv.Itoa(q)})
		if err != nil {
			return 0, err
		}
		n, err := strconv.ParseInt(fields["offset"], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("maximum offset of queue %d: %w", q, err)
		}
		total += n
	}
	return total, nil
}

// call makes one request on a connection of its own, with neither client's
// code: it checks both.
func call(addr string, code int, fields map[string]string) (map[string]string, string, error) {
	conn, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		return nil, "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return nil, "", err
	}
	header, err := json.Marshal(map[string]any{
		"code": code, "language": "JAVA", "version": 401, "opaque": 1, "flag": 0,
		"serializeTypeCurrentRPC": "JSON", "extFields": fields,
	})
	if err != nil {
		return nil, "", err
	}
	frame := binary.BigEndian.AppendUint32(nil, uint32(4+len(header)))
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(header)))
	if _, err := conn.Write(append(frame, header...)); err != nil {
		return nil, "", err
	}
	var size [8]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return nil, "", err
	}
	total, head := int(binary.BigEndian.Uint32(size[:])), int(binary.BigEndian.Uint32(size[4:])&0xFFFFFF)
	if total > 16<<20 || head > total-4 {
		return nil, "", fmt.Errorf("answer with impossible lengths %d, %d", total, head)
	}
	rest := make([]byte, total-4)
	if _, err := io.ReadFull(conn, rest); err != nil {
		return nil, "", err
	}
	var answer struct {
		Code      int
		Remark    string
		ExtFields map[string]string
	}
	if err := json.Unmarshal(rest[:head], &answer); err != nil {
		return nil, "", err
	}
	if answer.Code != 0 {
		return nil, "", fmt.Errorf("request %d: code %d: %s", code, answer.Code, answer.Remark)
	}
	return answer.ExtFields, string(rest[head:]), nil
}

// freePorts finds loopback addresses that nobody listens on.
func freePorts(n int) ([]string, error) {
	var addrs []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close() //revive:disable-line:defer all stay open until the last is found
		addrs = append(addrs, l.Addr().String())
	}
	return addrs, nil
}
