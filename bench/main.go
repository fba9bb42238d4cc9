// Command mqbench compares the official Go client with this module's, in turns
// within one run, first on a null broker and then on cmd/rmqbroker:
//
//	go build -o bin/rmqbroker ./cmd/rmqbroker
//	cd bench && go run . -rmqbroker ../bin/rmqbroker
//
// or "make bench-peer". The null broker, a mode of this program, answers at once
// and stores nothing: what differs there is the client, and what is asked of
// ours ("must") is asked there. On rmqbroker the broker's own work is in both
// clients' rates; -on chooses.
//
// Broker and load are separate processes, started anew for every point (a
// consumer's broker, which has to be filled first, serves all rounds of its
// workload). A sender runs for a second to warm up and is then measured for the
// length of -window. A consumer reads a filled topic from its start with a group
// of its own; its first tenth is the warm-up.
//
// A point counts only if the work was done: acknowledged messages equal the
// rise of the queues' offsets, every message of the filled topic arrived, no
// call failed. One-way messages have no acknowledgement: their rate is that of
// the broker's offsets, which must reach the number of calls. A round in which
// the machine lost more than 3 % of its time to its host (-stolen) is repeated.
// What is claimed is the ratio within a round; rates of different runs are not
// comparable.
//
// What an idle consumer costs, and the time from a send to the handler, are
// measured on rmqbroker for both clients and held against fixed limits.
//
// With -apache VERSIONS (make bench-java) it compares brokers: Apache's and
// rmqbroker, both under this module's client. Their processes stay up for all
// rounds of a kind of flush, after a warm-up that a JVM needs; points alternate
// within every round as above. Rates, CPU per message, latency at a fixed rate,
// memory and the time of a start are printed as ratios beside what is asked.
//
// "msg/s" is the rate in the measured window, "us CPU" the load process's user
// and system time per message and the broker's, "allocs" and "bytes" the load
// process's heap allocations per message, "writes" its write calls, which are
// almost all on sockets.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// settings of a run.
type settings struct {
	rmqbroker string
	dir       string
	window    time.Duration
	warmup    time.Duration
	rounds    int
	preload   int
	only      string
	on        []string
	stolen    float64 // percent of the machine's time that its host may take
	jsonFile  string
	idle      time.Duration
	java      javaSettings
}

func main() {
	if len(os.Args) > 1 {
		// One point's load or null broker, in a process of its own.
		if part := map[string]func([]string) error{"load": loadMain, "null": nullMain}[os.Args[1]]; part != nil {
			if err := part(os.Args[2:]); err != nil {
				fmt.Fprintf(os.Stderr, "mqbench %s: %v\n", os.Args[1], err)
				os.Exit(1)
			}
			return
		}
	}
	var s settings
	on := flag.String("on", onNull+","+onOurs, "the kinds of brokers to compare the clients on, comma-separated")
	flag.StringVar(&s.rmqbroker, "rmqbroker", "", "the rmqbroker binary to load (needed)")
	flag.StringVar(&s.dir, "dir", os.TempDir(), "where brokers keep their data")
	flag.DurationVar(&s.window, "window", 2500*time.Millisecond, "measured time of a sender")
	flag.DurationVar(&s.warmup, "warmup", time.Second, "time before it")
	flag.IntVar(&s.rounds, "rounds", 5, "rounds of each workload")
	flag.IntVar(&s.preload, "preload", 200_000, "messages a consumer finds")
	flag.StringVar(&s.only, "only", "", "comma-separated parts of workload names")
	flag.Float64Var(&s.stolen, "stolen", 3, "repeat a round in which the host took more than so many percent of the machine's time")
	flag.StringVar(&s.jsonFile, "json", "", "also write every point to this file")
	versions := flag.String("apache", "", "compare brokers instead: ours with Apache's of these versions, comma-separated (see make bench-java)")
	flag.StringVar(&s.java.interop, "interop", "", "with -apache: the repository's directory interop")
	flag.StringVar(&s.java.heap, "heap", "1g", "with -apache: heap of Apache's broker")
	conf := flag.String("javaconf", "", "with -apache: file with more lines of its broker.conf")
	flag.DurationVar(&s.java.warm, "javawarm", 30*time.Second, "with -apache: least time of warming up")
	flag.IntVar(&s.java.warmMin, "javawarmcount", 300_000, "with -apache: least messages of warming up")
	flag.DurationVar(&s.idle, "idle", 3*time.Second, "with -apache: time after the first message at which idle memory is read")
	flag.Parse()
	s.on = strings.Split(*on, ",")
	run := suite
	if *versions != "" {
		s.java.versions, run = strings.Split(*versions, ","), versus
	}
	if *conf != "" {
		b, err := os.ReadFile(*conf)
		if err != nil {
			fmt.Fprintln(os.Stderr, "mqbench:", err)
			os.Exit(1)
		}
		s.java.conf = string(b)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, s); err != nil {
		fmt.Fprintln(os.Stderr, "mqbench:", err)
		os.Exit(1)
	}
}

// suite runs every selected workload on every kind of broker and prints the
// ratios.
func suite(ctx context.Context, s settings) error {
	for _, kind := range s.on {
		if kind != onNull && kind != onOurs {
			return fmt.Errorf("-on %q: there are %s and %s", kind, onNull, onOurs)
		}
		if kind == onOurs && s.rmqbroker == "" {
			return errors.New("-rmqbroker PATH is needed; build it with: go build -o bin/rmqbroker ./cmd/rmqbroker")
		}
	}
	if s.rounds < 1 || s.preload < 1000 {
		return errors.New("-rounds must be at least 1 and -preload at least 1000")
	}
	if err := printMachine(s.dir); err != nil {
		return err
	}
	var all []report
	for _, kind := range s.on {
		ws := workloads
		if kind == onOurs {
			ws = slices.Concat(workloads, costWorkloads)
		}
		for _, w := range ws {
			if !selected(w.Name, s.only) {
				continue
			}
			r, err := runWorkload(ctx, s, kind, w)
			if err != nil {
				return fmt.Errorf("%s on %s: %w", w.Name, kind, err)
			}
			r.printSummary(s.stolen)
			all = append(all, r)
		}
	}
	if len(all) == 0 {
		return fmt.Errorf("no workload matches -only %q", s.only)
	}
	printRatios(all)
	if s.jsonFile == "" {
		return nil
	}
	b, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(s.jsonFile, b, 0o644)
}

func selected(name, only string) bool {
	if only == "" {
		return true
	}
	for part := range strings.SplitSeq(only, ",") {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

// runWorkload alternates the clients within every round, so that a slow minute
// of the machine hits both.
func runWorkload(ctx context.Context, s settings, kind string, w workload) (report, error) {
	fmt.Printf("\n%s on %s: %s\n", w.Name, kind, w.Text)
	r := report{Workload: w.Name, Broker: kind, Must: w.Must, limits: w.limits}
	var filled *broker
	if w.Op == "consume" {
		w.Count = w.count(s, kind)
		var err error
		if filled, err = startBroker(ctx, s, kind, w); err != nil {
			return r, err
		}
		defer filled.stop()
		if kind == onOurs {
			if _, err := runLoad(ctx, s, filled, w.fill(s), "ours", 0); err != nil {
				return r, fmt.Errorf("filling the topic: %w", err)
			}
		}
	}
	one := func(client string) (point, error) {
		b := filled
		if b == nil {
			var err error
			if b, err = startBroker(ctx, s, kind, w); err != nil {
				return point{}, err
			}
			defer b.stop()
		}
		return runPoint(ctx, s, w, client, b, len(r.Rounds)+r.Dropped)
	}
	for len(r.Rounds) < s.rounds {
		var rd round
		for _, client := range clients {
			p, err := one(client)
			if err != nil {
				return r, fmt.Errorf("round %d, %s: %w", len(r.Rounds)+1, client, err)
			}
			rd.Points = append(rd.Points, p)
		}
		if rd.stolen() > s.stolen {
			if r.Dropped++; r.Dropped > 2*s.rounds {
				return r, fmt.Errorf("the machine is too busy: its host keeps taking more than %g %% of its time; see -stolen", s.stolen)
			}
			continue
		}
		r.Rounds = append(r.Rounds, rd)
		rd.print(len(r.Rounds))
	}
	return r, nil
}

// runPoint measures one client once.
func runPoint(ctx context.Context, s settings, w workload, client string, b *broker, n int) (point, error) {
	before, err := b.stored()
	if err != nil {
		return point{}, err
	}
	p, err := runLoad(ctx, s, b, w, client, n)
	if err != nil {
		return p, err
	}
	after, err := b.stored()
	if err != nil {
		return p, err
	}
	if w.Op != "consume" && after-before != p.Total {
		return p, fmt.Errorf("%d messages were acknowledged, but the queues grew by %d", p.Total, after-before)
	}
	return p, nil
}

// runLoad runs the load in a process of its own and reads its result.
func runLoad(ctx context.Context, s settings, b *broker, w workload, client string, n int) (p point, err error) {
	self, err := os.Executable()
	if err != nil {
		return p, err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute+s.window)
	defer cancel()
	j := job{
		Client: client, Work: w, NameServer: b.namesrv, Broker: b.addr, Group: fmt.Sprintf("bench_%s_%d", client, n),
		Warmup: s.warmup, Window: s.window, BrokerPID: b.pid(),
	}
	if w.Op == "consume" && w.Count == 0 {
		j.Work.Count = s.preload
	}
	arg, err := json.Marshal(j)
	if err != nil {
		return p, err
	}
	cmd := exec.CommandContext(ctx, self, "load", string(arg))
	cmd.Env = append(os.Environ(), "ROCKETMQ_GO_LOG_LEVEL=fatal", "HOME="+b.dir)
	var diag strings.Builder
	cmd.Stderr = &diag
	out, err := cmd.Output()
	if err != nil {
		return p, fmt.Errorf("load process: %w: %s", err, strings.TrimSpace(diag.String()))
	}
	if err := json.Unmarshal(out, &p); err != nil {
		return p, fmt.Errorf("load process printed %q: %w", out, err)
	}
	return p, nil
}
