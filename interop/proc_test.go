//go:build interop

package interop

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is how long the suite waits for anything. A machine that others use as
// well may be slow, and only a failure takes all of it.
const patience = 3 * time.Minute

// A server is a process that runs until the test ends.
type server struct {
	name string
	cmd  *exec.Cmd
	log  string        // file with its output
	done chan struct{} // closed when it has ended
	err  error         // valid once done is closed
}

// startServer starts cmd and waits until a line with the text ready is in its
// output. The process is ended when t ends, if stop has not been called.
func startServer(t *testing.T, name, ready string, cmd *exec.Cmd) (s *server, readyLine string) {
	t.Helper()
	s = &server{name: name, cmd: cmd, log: filepath.Join(newDir(t, name), "output.log"), done: make(chan struct{})}
	out, err := os.Create(s.log)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close() // the child has its own descriptor
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	go func() {
		s.err = cmd.Wait()
		close(s.done)
	}()
	t.Cleanup(func() {
		select {
		case <-s.done:
		default:
			_ = s.stop()
		}
		if t.Failed() {
			t.Logf("%s ended: %v; the end of its output:\n%s", name, s.err, s.tail(30))
		}
	})
	for end := time.Now().Add(patience); time.Now().Before(end); {
		b, err := os.ReadFile(s.log)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			if strings.Contains(line, ready) && strings.HasSuffix(line, "\n") {
				return s, strings.TrimSpace(line)
			}
		}
		select {
		case <-s.done:
			t.Fatalf("%s ended before it was ready: %v", name, s.err)
		case <-time.After(20 * time.Millisecond):
		}
	}
	t.Fatalf("%s: no line with %q in %v", name, ready, patience)
	return nil, ""
}

// stop asks the process to end, waits, and reports how it ended.
func (s *server) stop() error {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.done:
		return s.err
	case <-time.After(patience):
		_ = s.cmd.Process.Kill()
		<-s.done
		return fmt.Errorf("%s did not end within %v of SIGTERM", s.name, patience)
	}
}

// kill ends the process at once, as kill -9 does.
func (s *server) kill(t *testing.T) {
	t.Helper()
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-s.done
}

func (s *server) tail(n int) string {
	b, _ := os.ReadFile(s.log)
	return end(quiet(string(b)), n)
}

// end returns the last n lines of a text.
func end(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// output runs a program to its end, at most limit long, and returns what it
// wrote to both streams.
func output(t *testing.T, limit time.Duration, cmd *exec.Cmd) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	var buf bytes.Buffer
	c := exec.CommandContext(ctx, cmd.Path, cmd.Args[1:]...)
	c.Dir, c.Env = cmd.Dir, cmd.Env
	c.Stdout, c.Stderr = &buf, &buf
	c.WaitDelay = 5 * time.Second
	err := c.Run()
	if ctx.Err() != nil {
		err = fmt.Errorf("not done after %v: %w", limit, err)
	}
	return buf.String(), err
}

// lastLine returns the last line of text that is not empty.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

var ports struct {
	sync.Mutex
	next int
}

// freePort returns a port p such that p-2 to p+1 are free as well: a Java
// broker also listens on p-2 and p+1. Ranges that were handed out do not
// overlap. They lie below the ports that systems give to outgoing
// connections, so that nobody takes one between this check and its use.
func freePort(t *testing.T) int {
	t.Helper()
	ports.Lock()
	defer ports.Unlock()
	if ports.next == 0 {
		ports.next = 20_000 + os.Getpid()%1000*10
	}
	for range 1000 {
		p := ports.next
		if ports.next += 10; ports.next > 32_000 {
			ports.next = 20_000
		}
		if free(p-2) && free(p-1) && free(p) && free(p+1) {
			return p
		}
	}
	t.Fatal("no free range of ports")
	return 0
}

func free(port int) bool {
	l, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
	if err != nil {
		return false
	}
	_ = l.Close()
	return true
}
