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
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A broker is a broker's process with a name server and an empty store.
type broker struct {
	process
	dir     string
	namesrv string
	addr    string
	queues  int      // of the topic
	names   *process // the name server's process, if it has one of its own
}

// Kinds of brokers that clients are compared on.
const (
	onNull = "null"
	onOurs = "rmqbroker"
)

// startBroker starts a broker for a workload and makes the topic. A consumer's
// topic has the messages on a null broker, and is to be filled on others.
func startBroker(ctx context.Context, s settings, kind string, w workload) (b *broker, err error) {
	if kind == onNull {
		b, err = launchNull(ctx, s, w)
	} else {
		b, err = launchOurs(ctx, s, "")
	}
	if err != nil {
		return nil, err
	}
	if w.Queues > 0 {
		b.queues = w.Queues
	}
	if err := b.createTopic(); err != nil {
		b.stop()
		return nil, err
	}
	return b, nil
}

// launchOurs starts rmqbroker with lines of configuration and waits until it
// is ready.
func launchOurs(ctx context.Context, s settings, conf string) (*broker, error) {
	b, err := newBroker(s)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(b.dir, "broker.conf")
	err = os.WriteFile(file, []byte(conf), 0o600)
	if err == nil {
		err = b.run(exec.CommandContext(ctx, s.rmqbroker, "-namesrv-listen", b.namesrv, "-listen", b.addr,
			"-store", filepath.Join(b.dir, "store"), "-c", file), "rmqbroker ready")
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(b.dir))
	}
	return b, nil
}

// launchNull starts the null broker, which is this program.
func launchNull(ctx context.Context, s settings, w workload) (*broker, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	b, err := newBroker(s)
	if err != nil {
		return nil, err
	}
	count := 0
	if w.Op == "consume" {
		count = w.count(s, onNull)
	}
	err = b.run(exec.CommandContext(ctx, self, "null", b.namesrv, b.addr, strconv.Itoa(count), strconv.Itoa(w.Body)), "null broker ready")
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(b.dir))
	}
	return b, nil
}

// newBroker makes a directory and finds addresses.
func newBroker(s settings) (*broker, error) {
	ports, err := freePorts(2)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(s.dir, "mqbench-")
	return &broker{dir: dir, namesrv: ports[0], addr: ports[1], queues: queues}, err
}

// stop ends the processes and removes their data.
func (b *broker) stop() {
	b.end()
	if b.names != nil {
		b.names.end()
	}
	_ = os.RemoveAll(b.dir)
}

// A process is a server.
type process struct {
	cmd  *exec.Cmd
	done chan error
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// run starts a server and waits until a line of its output has the text.
func (p *process) run(cmd *exec.Cmd, text string) error {
	p.cmd, p.done = cmd, make(chan error, 1)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return err
	}
	ready := make(chan bool, 1)
	go func() {
		sc := bufio.NewScanner(out)
		up := false
		for sc.Scan() { // to the end: a full pipe would block the server
			if !up && strings.Contains(sc.Text(), text) {
				up = true
				ready <- true
			}
		}
		close(ready)
		p.done <- cmd.Wait()
	}()
	name := filepath.Base(cmd.Path)
	select {
	case ok := <-ready:
		if !ok {
			return errors.Join(fmt.Errorf("%s ended before it was ready", name), <-p.done)
		}
		return nil
	case <-time.After(60 * time.Second):
		return errors.Join(fmt.Errorf("%s did not become ready in 60 s", name), cmd.Process.Kill(), <-p.done)
	}
}

// end stops a server.
func (p *process) end() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(15 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// createTopic makes the topic and waits until the name server knows it, so
// that no client starts with queues of its own making.
func (b *broker) createTopic() error {
	const updateAndCreateTopic, getRouteInfoByTopic = 17, 105
	n := strconv.Itoa(b.queues)
	_, _, err := call(b.addr, updateAndCreateTopic, map[string]string{
		"topic": topic, "defaultTopic": "TBW102", "readQueueNums": n, "writeQueueNums": n, "perm": "6",
		"topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "false",
	})
	for end := time.Now().Add(40 * time.Second); err == nil; time.Sleep(5 * time.Millisecond) {
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
	for q := range b.queues {
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
	return callBody(addr, code, fields, nil)
}

// callBody is call with a body.
func callBody(addr string, code int, fields map[string]string, body []byte) (map[string]string, string, error) {
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
	frame := binary.BigEndian.AppendUint32(nil, uint32(4+len(header)+len(body)))
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(header)))
	if _, err := conn.Write(append(append(frame, header...), body...)); err != nil {
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
