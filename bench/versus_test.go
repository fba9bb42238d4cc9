package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

func TestVersusLine(t *testing.T) {
	r := report{Workload: "async-128"}
	for _, x := range []struct{ slow, fast, ours float64 }{{100, 200, 1000}, {150, 100, 900}, {100, 250, 500}} {
		r.Rounds = append(r.Rounds, round{Points: []point{
			{Client: "5.5.0", Rate: x.slow, BrokerCPU: 40, P99: 9}, {Client: "5.3.3", Rate: x.fast, BrokerCPU: 20, P99: 6},
			{Client: "ours", Rate: x.ours, BrokerCPU: 2, P99: 3},
		}})
	}
	want := "async-128    rate  2.00 /  5.00 /  6.00   must >= 4 (met)   broker CPU per message 0.05 / 0.10 / 0.10   must <= 0.08 (NOT met)"
	if got := r.versusLine(versusLoad{workload{Op: "send"}, 4, 1.0 / 12}); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	want = "async-128    p99   0.50 /  0.50 /  0.50   must <= 1 (met)"
	if got := r.versusLine(versusLoad{workload{Op: "paced"}, 0, 0}); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestPercentile(t *testing.T) {
	var took []time.Duration
	for i := range 1000 {
		took = append(took, time.Duration(i)*time.Millisecond)
	}
	if p50, p99 := percentile(took, 50), percentile(took, 99); p50 != 500 || p99 != 990 {
		t.Errorf("p50 %v, p99 %v", p50, p99)
	}
	if got := percentile(took[:1], 99); got != 0 {
		t.Errorf("of one: %v", got)
	}
}

func TestMemory(t *testing.T) {
	resident, anonymous := memory(os.Getpid())
	if runtime.GOOS == "linux" && (resident <= 0 || anonymous <= 0 || anonymous > resident) {
		t.Errorf("resident %v MiB, of that anonymous %v", resident, anonymous)
	}
}

// TestOursAlone does what the comparison does with ours: a start, a load at a
// fixed rate, both kinds of flush.
func TestOursAlone(t *testing.T) {
	dir := t.TempDir()
	bin := filepath.Join(dir, "rmqbroker")
	build := exec.Command("go", "build", "-o", bin, "./cmd/rmqbroker")
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building rmqbroker: %v\n%s", err, out)
	}
	s := settings{rmqbroker: bin, dir: dir, warmup: 50 * time.Millisecond, window: 200 * time.Millisecond, rounds: 1, preload: 1000, stolen: 100}
	for _, flush := range []string{"ASYNC_FLUSH", "SYNC_FLUSH"} {
		if !supports(t.Context(), s, flush) {
			t.Errorf("rmqbroker does not start with %s", flush)
			continue
		}
		b, err := launchOurs(t.Context(), s, oursConf(flush))
		if err != nil {
			t.Fatal(err)
		}
		if err := b.firstSend(); err != nil {
			t.Error(err)
		}
		if err := b.createTopic(); err != nil {
			t.Error(err)
		}
		p, err := runPoint(t.Context(), s, workload{Name: "paced", Op: "paced", Workers: 16, Rate: 1000, Body: 100}, "ours", b, 0)
		if err != nil || p.Total != 251 || p.P50 <= 0 || p.P99 < p.P50 {
			t.Errorf("%s: %+v, %v", flush, p, err)
		}
		b.stop()
	}
	if supports(t.Context(), s, "NO_FLUSH") {
		t.Error("rmqbroker starts with NO_FLUSH")
	}
}
