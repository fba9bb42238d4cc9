//go:build interop

package interop

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const (
	quickstartMessages = 20_000
	clientMessages     = 2_000
	clientStored       = clientMessages + clientMessages/10 // with those the consumers filter out
)

// TestApache runs our quickstart against Apache's name server and broker of
// each version, Apache's own tools and clients as the control, and all that
// our clients do with theirs. It runs side by side.
func TestApache(t *testing.T) {
	for _, v := range versions {
		t.Run(v, func(t *testing.T) {
			c := startApache(t, v)
			name := strings.ReplaceAll(v, ".", "_")
			is := func(versions ...string) bool { return slices.Contains(versions, v) }

			beside(t, "quickstart", true, func(t *testing.T) {
				cmd := exec.Command(goBuild(t, "..", "./examples/quickstart"),
					"-namesrv", c.namesrv, "-n", fmt.Sprint(quickstartMessages))
				cmd.Dir = newDir(t, "quickstart")
				out, err := output(t, patience, cmd)
				want := fmt.Sprintf("sent %[1]d, received %[1]d, missing 0, duplicates 0", quickstartMessages)
				if got := lastLine(out); err != nil || got != want {
					t.Fatalf("%v, last line %q, want %q; output:\n%s", err, got, want, out)
				}
				pairing("quickstart", c.name, "%s", strings.ReplaceAll(want, ",", ""))
			})
			with := grouped(v)
			beside(t, "groups", len(with) > 0 && !is("5.5.0"), func(t *testing.T) { groups(t, c, with) })
			beside(t, "pop", is(popVersion), func(t *testing.T) { pops(t, v, c) })
			beside(t, "pop", is("4.9.7"), func(t *testing.T) { popRefused(t, c) })
			beside(t, "poll", is(pollVersion), func(t *testing.T) { polls(t, v, c) })
			beside(t, "operator", is(operatorVersion), func(t *testing.T) { operator(t, c) })
			beside(t, "examples", is(exampleVersion), func(t *testing.T) { examples(t, c) })
			beside(t, "transactions", !is("5.5.0"), func(t *testing.T) { transactions(t, v, c) })
			beside(t, "timers", is(timerVersion), func(t *testing.T) { timersJava(t, v, c) })
			beside(t, "java client", true, func(t *testing.T) {
				topic, group := "Java_"+name, "java_"+name
				createTopic(t, v, c, topic)
				pairing("java "+v, c.name+" (control)", "%s", roundTripJava(t, v, c, topic, group, clientMessages))
				commands := inspect(t, v, c, topic, group, clientStored)
				pairing("mqadmin "+v, c.name+" (control)", "commands %d as expected %d", commands+1, commands+1)
			})
			beside(t, "go client", true, func(t *testing.T) {
				topic, group := "Go_"+name, "go_"+name
				createTopic(t, v, c, topic)
				pairing("official go client", c.name+" (control)", "%s", roundTripGo(t, c, topic, group, clientMessages))
			})
			beside(t, "our producer", true, func(t *testing.T) { oursToJava(t, v, c) })
			beside(t, "requests", true, func(t *testing.T) { requests(t, v, c) })
		})
	}
}

// beside runs a test side by side with the others, if it is wanted.
func beside(t *testing.T, name string, wanted bool, f func(t *testing.T)) {
	if wanted {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t)
		})
	}
}

// TestRmqbroker runs Apache's Java clients, the official Go client and
// mqadmin against our name server and broker. It runs side by side.
func TestRmqbroker(t *testing.T) {
	c := startOurs(t)
	t.Run("with", func(t *testing.T) {
		with := grouped("")
		beside(t, "groups", len(with) > 0, func(t *testing.T) { groups(t, c, with) })
		beside(t, "pop", slices.Contains(versions, popVersion), func(t *testing.T) { pops(t, popVersion, c) })
		beside(t, "poll", slices.Contains(versions, pollVersion), func(t *testing.T) { polls(t, pollVersion, c) })
		beside(t, "operator", slices.Contains(versions, operatorVersion), func(t *testing.T) { operator(t, c) })
		for _, v := range versions {
			name := strings.ReplaceAll(v, ".", "_")
			beside(t, "java client "+v, true, func(t *testing.T) {
				topic, group := "Java_"+name, "java_"+name
				createTopic(t, v, c, topic)
				pairing("java "+v, c.name, "%s", roundTripJava(t, v, c, topic, group, clientMessages))
				commands := 1 + inspect(t, v, c, topic, group, clientStored)
				if !t.Failed() {
					pairing("mqadmin "+v, c.name, "commands %d as expected %d", commands, commands)
				}
			})
			beside(t, "timers "+v, v != "4.9.7", func(t *testing.T) { timersJava(t, v, c) })
			beside(t, "transactions "+v, v != "5.5.0", func(t *testing.T) { transactions(t, v, c) })
			beside(t, "java producer "+v, true, func(t *testing.T) { javaToOurs(t, v, c) })
			beside(t, "requests "+v, true, func(t *testing.T) { requests(t, v, c) })
		}
		beside(t, "go client", true, func(t *testing.T) {
			createTopic(t, versions[0], c, "Go")
			pairing("official go client", c.name, "%s", roundTripGo(t, c, "Go", "go_group", clientMessages))
		})
		beside(t, "our producer", true, func(t *testing.T) { oursToJava(t, versions[0], c) })
		beside(t, "go producer", true, func(t *testing.T) { goToOurs(t, c) })
		beside(t, "go requests", true, func(t *testing.T) { requestsGo(t, c) })
	})
	t.Run("stop", func(t *testing.T) {
		if err := c.broking.stop(); err != nil {
			t.Errorf("rmqbroker on SIGTERM: %v, want a clean exit", err)
		}
		if b, _ := os.ReadFile(c.broking.log); strings.Contains(string(b), "panic") {
			t.Errorf("rmqbroker printed a panic:\n%s", b)
		}
	})
}
