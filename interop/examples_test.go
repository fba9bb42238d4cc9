//go:build interop

package interop

import (
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
)

// exampleVersion of Apache RocketMQ is what the examples are run against. It has
// all that they show: timers, recalls and POP.
const exampleVersion = "5.3.3"

// smallExamples are the programs that show one idea each.
var smallExamples = []string{
	"batch", "broadcast", "delay", "litepull", "ordered", "pop", "producer",
	"requestreply", "sqlfilter", "testservice", "tracing", "transaction",
}

var balanced = regexp.MustCompile(`^orders (\d+), paid \d+, shipped \d+, refunded \d+, cancelled \d+, books balanced$`)

// examples runs the shop and the small examples on a cluster.
func examples(t *testing.T, c *cluster) {
	t.Run("shop", func(t *testing.T) {
		t.Parallel()
		bin := goBuild(t, "..", "./examples/shop")
		const orders = 300
		out, err := example(t, bin, c, "-orders", fmt.Sprint(orders))
		last := lastLine(out)
		if m := balanced.FindStringSubmatch(last); err != nil || m == nil || m[1] != fmt.Sprint(orders) {
			t.Fatalf("%v, last line %q; the end of the output:\n%s", err, last, end(out, 60))
		}
		pairing("shop", c.name, "%s", strings.ReplaceAll(last, ",", ""))
	})
	for _, name := range smallExamples {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bin := goBuild(t, "..", "./examples/"+name)
			start := time.Now()
			if out, err := example(t, bin, c); err != nil {
				t.Fatalf("%v; the end of the output:\n%s", err, end(out, 60))
			}
			pairing("example "+name, c.name, "exit 0 after %v", time.Since(start).Round(time.Second))
		})
	}
}

func example(t *testing.T, bin string, c *cluster, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command(bin, append([]string{"-namesrv", c.namesrv}, args...)...)
	cmd.Dir = newDir(t, "example")
	return output(t, 2*patience, cmd)
}
