//go:build interop

package interop

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	quickstartMessages = 20_000
	clientMessages     = 2_000
	clientStored       = clientMessages + clientMessages/10 // with those the consumers filter out
)

// TestApache runs our quickstart against Apache's name server and broker of
// each version, and Apache's own tools and clients as the control.
func TestApache(t *testing.T) {
	for _, v := range versions {
		t.Run(v, func(t *testing.T) {
			c := startApache(t, v)
			name := strings.ReplaceAll(v, ".", "_")

			t.Run("quickstart", func(t *testing.T) {
				cmd := exec.Command(goBuild(t, "..", "./examples/quickstart"),
					"-namesrv", c.namesrv, "-n", fmt.Sprint(quickstartMessages))
				cmd.Dir = newDir(t, "quickstart")
				out, err := output(t, 3*time.Minute, cmd)
				want := fmt.Sprintf("sent %[1]d, received %[1]d, missing 0, duplicates 0", quickstartMessages)
				if got := lastLine(out); err != nil || got != want {
					t.Fatalf("%v, last line %q, want %q; output:\n%s", err, got, want, out)
				}
				pairing("quickstart", c.name, "%s", strings.ReplaceAll(want, ",", ""))
			})
			t.Run("java client", func(t *testing.T) {
				topic, group := "Java_"+name, "java_"+name
				createTopic(t, v, c, topic)
				pairing("java "+v, c.name+" (control)", "%s", roundTripJava(t, v, c, topic, group, clientMessages))
				commands := inspect(t, v, c, topic, group, clientStored)
				pairing("mqadmin "+v, c.name+" (control)", "commands %d as expected %d", commands+1, commands+1)
			})
			t.Run("go client", func(t *testing.T) {
				topic, group := "Go_"+name, "go_"+name
				createTopic(t, v, c, topic)
				pairing("official go client", c.name+" (control)", "%s", roundTripGo(t, c, topic, group, clientMessages))
			})
			t.Run("our producer", func(t *testing.T) { oursToJava(t, v, c) })
			t.Run("requests", func(t *testing.T) { requests(t, v, c) })
			if v == timerVersion {
				t.Run("timers", func(t *testing.T) { timersJava(t, v, c) })
			}
			if v != "5.5.0" {
				t.Run("transactions", func(t *testing.T) { transactions(t, v, c) })
			}
			if with := grouped(v); len(with) > 0 && v != "5.5.0" {
				t.Run("groups", func(t *testing.T) { groups(t, c, with) })
			}
			switch v {
			case popVersion:
				t.Run("pop", func(t *testing.T) { pops(t, v, c) })
			case "4.9.7":
				t.Run("pop", func(t *testing.T) { popRefused(t, c) })
			}
			if v == pollVersion {
				t.Run("poll", func(t *testing.T) { polls(t, v, c) })
			}
			if v == exampleVersion {
				t.Run("examples", func(t *testing.T) { examples(t, c) })
			}
			if v == operatorVersion {
				t.Run("operator", func(t *testing.T) { operator(t, c) })
			}
		})
	}
}

// TestRmqbroker runs Apache's Java clients, the official Go client and
// mqadmin against our name server and broker.
func TestRmqbroker(t *testing.T) {
	c := startOurs(t)
	for _, v := range versions {
		name := strings.ReplaceAll(v, ".", "_")
		topic, group := "Java_"+name, "java_"+name
		commands := 0
		t.Run("java client "+v, func(t *testing.T) {
			createTopic(t, v, c, topic)
			commands++
			pairing("java "+v, c.name, "%s", roundTripJava(t, v, c, topic, group, clientMessages))
		})
		t.Run("mqadmin "+v, func(t *testing.T) {
			if commands == 0 {
				t.Fatal("updateTopic failed above; nothing to inspect")
			}
			commands += inspect(t, v, c, topic, group, clientStored)
			if !t.Failed() {
				pairing("mqadmin "+v, c.name, "commands %d as expected %d", commands, commands)
			}
		})
	}
	t.Run("go client", func(t *testing.T) {
		createTopic(t, versions[0], c, "Go")
		pairing("official go client", c.name, "%s", roundTripGo(t, c, "Go", "go_group", clientMessages))
	})
	for _, v := range versions {
		t.Run("java producer "+v, func(t *testing.T) { javaToOurs(t, v, c) })
		t.Run("requests "+v, func(t *testing.T) { requests(t, v, c) })
		if v != "4.9.7" {
			t.Run("timers "+v, func(t *testing.T) { timersJava(t, v, c) })
		}
		if v != "5.5.0" {
			t.Run("transactions "+v, func(t *testing.T) { transactions(t, v, c) })
		}
	}
	t.Run("our producer", func(t *testing.T) { oursToJava(t, versions[0], c) })
	t.Run("go producer", func(t *testing.T) { goToOurs(t, c) })
	t.Run("go requests", func(t *testing.T) { requestsGo(t, c) })
	if with := grouped(""); len(with) > 0 {
		t.Run("groups", func(t *testing.T) { groups(t, c, with) })
	}
	if slices.Contains(versions, popVersion) {
		t.Run("pop", func(t *testing.T) { pops(t, popVersion, c) })
	}
	if slices.Contains(versions, pollVersion) {
		t.Run("poll", func(t *testing.T) { polls(t, pollVersion, c) })
	}
	if slices.Contains(versions, operatorVersion) {
		t.Run("operator", func(t *testing.T) { operator(t, c) })
	}
	t.Run("stop", func(t *testing.T) {
		if err := c.broking.stop(); err != nil {
			t.Errorf("rmqbroker on SIGTERM: %v, want a clean exit", err)
		}
		if b, _ := os.ReadFile(c.broking.log); strings.Contains(string(b), "panic") {
			t.Errorf("rmqbroker printed a panic:\n%s", b)
		}
	})
}
