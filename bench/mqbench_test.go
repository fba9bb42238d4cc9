package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestMain lets the test binary be its own load and null broker processes.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == "load" || os.Args[1] == "null") {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestSuite runs every workload once on each kind of broker, briefly: the
// figures mean nothing, but all the work must have been done.
func TestSuite(t *testing.T) {
	dir := t.TempDir()
	bin := filepath.Join(dir, "rmqbroker")
	build := exec.Command("go", "build", "-o", bin, "./cmd/rmqbroker")
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building rmqbroker: %v\n%s", err, out)
	}
	file := filepath.Join(dir, "points.json")
	err := suite(t.Context(), settings{
		rmqbroker: bin, dir: dir, warmup: 50 * time.Millisecond, window: 200 * time.Millisecond,
		rounds: 1, preload: 2000, on: []string{onNull, onOurs}, stolen: 100, jsonFile: file,
	})
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got []report
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	want := slices.Concat(workloads, workloads, costWorkloads)
	if len(got) != len(want) {
		t.Fatalf("%d workloads were reported, want %d", len(got), len(want))
	}
	for n, r := range got {
		w, kind := want[n], onNull
		if n >= len(workloads) {
			kind = onOurs
		}
		if r.Workload != w.Name || r.Broker != kind || r.Must != w.Must {
			t.Errorf("report %d is of %s on %s", n, r.Workload, r.Broker)
		}
		for i, p := range r.Rounds[0].Points {
			ok := p.Client == clients[i] && p.Allocs > 0
			switch w.Op {
			case "idle":
				ok = ok && p.Total == 0 && p.Busy > 0 && p.Resident > 0
			case "latency":
				ok = ok && p.Total > 0 && p.P50 > 0 && p.P99 >= p.P50
			default:
				ok = ok && p.Total > 0 && p.Rate > 0 && (p.Calls > 0) == (w.Op == "oneway")
			}
			if !ok {
				t.Errorf("%s on %s: point %d is %+v", r.Workload, r.Broker, i, p)
			}
		}
	}
}

func TestCostLines(t *testing.T) {
	r := report{Workload: "w", limits: []limit{{"ms p99", 5, func(p point) float64 { return p.P99 }}}}
	for _, v := range []float64{7, 4, 5} {
		r.Rounds = append(r.Rounds, round{Points: []point{{P99: 2 * v}, {P99: v}}})
	}
	if got, want := r.costLines(), "w              4.00 /   5.00 /   7.00 ms p99       must <= 5 (met)   official 10.00"; len(got) != 1 || got[0] != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	r.limits[0].most = 4
	if got := r.costLines()[0]; !strings.Contains(got, "NOT met") {
		t.Errorf("%q does not say that the limit is not met", got)
	}
}

func TestReport(t *testing.T) {
	r := report{Workload: "w", Must: 3}
	for _, rates := range [][2]float64{{100, 300}, {100, 200}, {50, 500}} {
		r.Rounds = append(r.Rounds, round{Points: []point{
			{Client: "official", Rate: rates[0], CPU: 10, Allocs: 75, Stolen: 0.5},
			{Client: "ours", Rate: rates[1], CPU: 2, Allocs: 3, Stolen: 4},
		}})
	}
	want := "w            rate  2.00 /  3.00 / 10.00   must >= 3 (met)   CPU per message x 0.20   allocs per message 3.00, official 75.00"
	if got := r.ratioLine(); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	r.Must = 3.5
	if got := r.ratioLine(); !strings.Contains(got, "must >= 3.5 (NOT met)") {
		t.Errorf("got %q", got)
	}
	if got := r.Rounds[0].stolen(); got != 4 {
		t.Errorf("stolen %v, want the larger of both", got)
	}
}

func TestBetween(t *testing.T) {
	at := time.Unix(0, 0)
	from := sample{at: at, count: 100, mallocs: 1000, bytes: 5000, machine: 10}
	to := sample{at: at.Add(2 * time.Second), count: 300, mallocs: 2000, bytes: 15000, cpu: 4 * time.Millisecond,
		broker: 2 * time.Millisecond, stolen: 3, machine: 110}
	want := point{Rate: 100, CPU: 20, BrokerCPU: 10, Allocs: 5, Bytes: 50, Stolen: 3}
	if got := between(from, to); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestOtherBroker(t *testing.T) {
	for _, kind := range []string{"", "nul"} {
		if err := suite(t.Context(), settings{on: []string{kind}, rounds: 1, preload: 1000}); err == nil {
			t.Errorf("-on %q is taken", kind)
		}
	}
}

func TestSelected(t *testing.T) {
	for _, tt := range []struct {
		only string
		want bool
	}{{"", true}, {"sync", true}, {"consume,16", true}, {"consume", false}} {
		if got := selected("sync-16-1k", tt.only); got != tt.want {
			t.Errorf("-only %q: %v, want %v", tt.only, got, tt.want)
		}
	}
}
