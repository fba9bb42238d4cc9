package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// stages are what both brokers are compared in. Each stage has its own
// processes, which stay up for all its rounds: a JVM that is not warm is
// compared with nothing.
var stages = []struct {
	name  string
	flush string
	loads []versusLoad
}{
	{"async", "ASYNC_FLUSH", []versusLoad{
		{workload{Name: "async-1", Op: "send", Workers: 1, Body: 1024, Text: "asynchronous flush, 1 sender, 1 KiB"}, 1.8, 0},
		{workload{Name: "async-16", Op: "send", Workers: 16, Body: 1024, Text: "asynchronous flush, 16 senders, 1 KiB"}, 2.5, 0},
		{workload{Name: "async-128", Op: "send", Workers: 128, Body: 1024, Text: "asynchronous flush, 128 senders, 1 KiB"}, 4, 1.0 / 6},
		{workload{Name: "async-10k/s", Op: "paced", Workers: 256, Rate: 10_000, Body: 1024, Text: "asynchronous flush, 10,000 messages/s whatever happens"}, 0, 0},
	}},
	{"pull", "ASYNC_FLUSH", []versusLoad{
		{workload{Name: "pull-1k", Op: "consume", Workers: 20, Body: 1024, Text: "push consumer reads stored messages, 1 KiB"}, 1, 1},
	}},
	{"sync", "SYNC_FLUSH", []versusLoad{
		{workload{Name: "sync-1", Op: "send", Workers: 1, Body: 1024, Text: "synchronous flush, 1 sender, 1 KiB"}, 2, 0},
		{workload{Name: "sync-16", Op: "send", Workers: 16, Body: 1024, Text: "synchronous flush, 16 senders, 1 KiB"}, 2, 0},
		{workload{Name: "sync-128", Op: "send", Workers: 128, Body: 1024, Text: "synchronous flush, 128 senders, 1 KiB"}, 3, 0},
		{workload{Name: "sync-10k/s", Op: "paced", Workers: 256, Rate: 10_000, Body: 1024, Text: "synchronous flush, 10,000 messages/s whatever happens"}, 0, 0},
	}},
}

// versusLoad is a workload and what is asked of ours: at least rate times
// Apache's rate, at most cpu times its CPU per message; 0: nothing.
type versusLoad struct {
	workload
	rate, cpu float64
}

// peer is one broker under comparison.
type peer struct {
	name   string
	broker *broker
}

// versus compares rmqbroker with Apache's broker.
func versus(ctx context.Context, s settings) error {
	if s.rmqbroker == "" || s.java.interop == "" {
		return errors.New("-rmqbroker PATH and -interop DIR are needed; use make bench-java")
	}
	if err := printMachine(s.dir); err != nil {
		return err
	}
	fmt.Printf("Apache's broker as shipped: heap %s, G1, auto-creation, traces and slave reads off; warmed by %d messages and %v\n",
		s.java.heap, s.java.warmMin, s.java.warm)
	var lines []string
	var all []report
	for _, st := range stages {
		var loads []versusLoad
		for _, l := range st.loads {
			if selected(l.Name, s.only) {
				loads = append(loads, l)
			}
		}
		if len(loads) == 0 {
			continue
		}
		rs, ls, err := runStage(ctx, s, st.name, st.flush, loads)
		if err != nil {
			return fmt.Errorf("%s: %w", st.name, err)
		}
		all, lines = append(all, rs...), append(lines, ls...)
	}
	if selected("start", s.only) {
		r, ls, err := startUp(ctx, s)
		if err != nil {
			return fmt.Errorf("start: %w", err)
		}
		all, lines = append(all, r), append(lines, ls...)
	}
	if len(lines) == 0 {
		return fmt.Errorf("no workload matches -only %q", s.only)
	}
	fmt.Printf("\nours / Apache's (%s, the faster in each round), per round: min / median / max\n", strings.Join(s.java.versions, ", "))
	for _, l := range lines {
		fmt.Println(l)
	}
	if s.jsonFile == "" {
		return nil
	}
	b, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(s.jsonFile, b, 0o600)
}

// launch starts one broker of each kind with the topic.
func launch(ctx context.Context, s settings, flush string) (peers []peer, err error) {
	defer func() {
		if err != nil {
			stopAll(peers)
		}
	}()
	for _, v := range s.java.versions {
		b, _, err := launchJava(ctx, s, v, flush)
		if err != nil {
			return peers, err
		}
		peers = append(peers, peer{v, b})
	}
	b, err := launchOurs(ctx, s, oursConf(flush))
	if err != nil {
		return peers, err
	}
	peers = append(peers, peer{"ours", b})
	for _, p := range peers {
		if err := p.broker.createTopic(); err != nil {
			return peers, fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return peers, nil
}

func oursConf(flush string) string {
	return "autoCreateTopicEnable=false\ntraceOn=false\nflushDiskType=" + flush + "\n"
}

func stopAll(peers []peer) {
	for _, p := range peers {
		p.broker.stop()
	}
}

// supports reports whether ours starts with a kind of flush.
func supports(ctx context.Context, s settings, flush string) bool {
	if flush == "ASYNC_FLUSH" {
		return true
	}
	b, err := launchOurs(ctx, s, oursConf(flush))
	if err != nil {
		return false
	}
	b.stop()
	return true
}

// runStage runs all loads of a stage.
func runStage(ctx context.Context, s settings, name, flush string, loads []versusLoad) (rs []report, lines []string, err error) {
	if !supports(ctx, s, flush) {
		return nil, []string{fmt.Sprintf("%-12s skipped: rmqbroker does not start with flushDiskType=%s", name, flush)}, nil
	}
	peers, err := launch(ctx, s, flush)
	if err != nil {
		return nil, nil, err
	}
	defer stopAll(peers)
	for _, p := range peers {
		if err := warm(ctx, s, p, loads[0].workload); err != nil {
			return nil, nil, fmt.Errorf("warming %s up: %w", p.name, err)
		}
	}
	for _, l := range loads {
		fmt.Printf("\n%s: %s\n", l.Name, l.Text)
		r, err := versusRounds(ctx, s, peers, l.workload)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", l.Name, err)
		}
		rs, lines = append(rs, r), append(lines, r.versusLine(l))
	}
	if name == "async" {
		lines = append(lines, loadedMemory(peers))
	}
	return rs, lines, nil
}

// warm makes a broker work until a JVM has compiled what matters. Ours needs
// no time for that, but gets as many messages.
func warm(ctx context.Context, s settings, p peer, w workload) error {
	begin, n := time.Now(), 0
	load := workload{Name: "warm", Op: "send", Workers: 128, Body: w.Body, Count: max(s.preload, s.java.warmMin)}
	for round := 0; n < s.java.warmMin || p.name != "ours" && time.Since(begin) < s.java.warm; round++ {
		if w.Op == "consume" && round == 0 {
			load.Count = s.preload // what all consumers read
		} else if w.Op == "consume" {
			load = w
		}
		pt, err := runLoad(ctx, s, p.broker, load, "ours", 10_000+round)
		if err != nil {
			return err
		}
		n += int(pt.Total)
	}
	fmt.Printf("warmed %s by %d messages in %v\n", p.name, n, time.Since(begin).Round(100*time.Millisecond))
	return nil
}

// versusRounds alternates the brokers within every round.
func versusRounds(ctx context.Context, s settings, peers []peer, w workload) (report, error) {
	r := report{Workload: w.Name}
	for len(r.Rounds) < s.rounds {
		var rd round
		for _, p := range peers {
			pt, err := runPoint(ctx, s, w, "ours", p.broker, len(r.Rounds)+r.Dropped)
			if err != nil {
				return r, fmt.Errorf("round %d, %s: %w", len(r.Rounds)+1, p.name, err)
			}
			pt.Client = p.name
			rd.Points = append(rd.Points, pt)
		}
		if rd.stolen() > s.stolen {
			if r.Dropped++; r.Dropped > 2*s.rounds {
				return r, fmt.Errorf("the machine is too busy: its host keeps taking more than %g %% of its time; see -stolen", s.stolen)
			}
			continue
		}
		r.Rounds = append(r.Rounds, rd)
		for _, pt := range rd.Points {
			fmt.Printf("  round %d  %-8s %8.0f msg/s  CPU per message: broker %5.2f us, client %5.2f us", len(r.Rounds), pt.Client, pt.Rate, pt.BrokerCPU, pt.CPU)
			if w.Op == "paced" {
				fmt.Printf("  p50 %.2f ms  p99 %.2f ms", pt.P50, pt.P99)
			}
			fmt.Println()
		}
	}
	if r.Dropped > 0 {
		fmt.Printf("  %d rounds were repeated: the host took more than %g %% of the machine's time\n", r.Dropped, s.stolen)
	}
	return r, nil
}

// best is Apache's fastest point of a round, and ours.
func (r round) best() (apache, ours point) {
	last := len(r.Points) - 1
	apache = r.Points[0]
	for _, p := range r.Points[:last] {
		if p.Rate > apache.Rate {
			apache = p
		}
	}
	return apache, r.Points[last]
}

// quotient is a ratio of ours to Apache's in a round; 0 if there is none.
func (r round) quotient(of func(point) float64) float64 {
	apache, ours := r.best()
	if of(apache) == 0 {
		return 0
	}
	return of(ours) / of(apache)
}

// versusLine is one line of the closing table.
func (r report) versusLine(l versusLoad) string {
	three := func(of func(point) float64) (least, mid, most float64) {
		return r.spread(func(rd round) float64 { return rd.quotient(of) })
	}
	if l.Op == "paced" {
		// The better tail of Apache's versions, not that of the faster one.
		least, mid, most := r.spread(func(rd round) float64 {
			last := len(rd.Points) - 1
			tail := rd.Points[0].P99
			for _, p := range rd.Points[:last] {
				tail = min(tail, p.P99)
			}
			return rd.Points[last].P99 / max(tail, 0.001)
		})
		return fmt.Sprintf("%-12s p99  %5.2f / %5.2f / %5.2f   must <= 1 %s", r.Workload, least, mid, most, verdict(mid <= 1))
	}
	least, mid, most := three(rate)
	line := fmt.Sprintf("%-12s rate %5.2f / %5.2f / %5.2f   must >= %g %s", r.Workload, least, mid, most, l.rate, verdict(mid >= l.rate))
	least, mid, most = three(func(p point) float64 { return p.BrokerCPU })
	line += fmt.Sprintf("   broker CPU per message %.2f / %.2f / %.2f", least, mid, most)
	if l.cpu > 0 {
		line += fmt.Sprintf("   must <= %.2f %s", l.cpu, verdict(mid <= l.cpu))
	}
	return line
}

func verdict(ok bool) string {
	if ok {
		return "(met)"
	}
	return "(NOT met)"
}

// loadedMemory compares what the brokers hold after load, mapped files aside.
func loadedMemory(peers []peer) string {
	var least float64
	for _, p := range peers[:len(peers)-1] {
		if _, anon := memory(p.broker.pid()); least == 0 || anon < least {
			least = anon
		}
	}
	_, ours := memory(peers[len(peers)-1].broker.pid())
	ratio := ours / max(least, 0.001)
	return fmt.Sprintf("%-12s %.3f (%.0f MiB, Apache's %.0f MiB: resident after load, without mapped files)   must <= 0.25 %s",
		"memory", ratio, ours, least, verdict(ratio <= 0.25))
}

// startUp compares the time from starting a broker to its first acknowledged
// message, and its resident memory a little later.
func startUp(ctx context.Context, s settings) (r report, lines []string, err error) {
	r.Workload = "start"
	fmt.Printf("\nstart: from starting the broker's process to the first acknowledged message; resident memory %v later\n", s.idle)
	for n := range s.rounds {
		var rd round
		for _, v := range append(append([]string(nil), s.java.versions...), "ours") {
			var b *broker
			started := time.Now()
			if v == "ours" {
				b, err = launchOurs(ctx, s, oursConf("ASYNC_FLUSH"))
			} else {
				b, started, err = launchJava(ctx, s, v, "ASYNC_FLUSH")
			}
			if err != nil {
				return r, nil, err
			}
			if err := b.firstSend(); err != nil {
				b.stop()
				return r, nil, fmt.Errorf("%s: %w", v, err)
			}
			took := time.Since(started)
			time.Sleep(s.idle)
			rss, _ := memory(b.pid())
			b.stop()
			rd.Points = append(rd.Points, point{Client: v, Start: took.Seconds(), Resident: rss})
			fmt.Printf("  round %d  %-8s %6.3f s  %6.1f MiB\n", n+1, v, took.Seconds(), rss)
		}
		r.Rounds = append(r.Rounds, rd)
	}
	for _, c := range []struct {
		name string
		of   func(point) float64
		must float64
	}{
		{"start", func(p point) float64 { return p.Start }, 1.0 / 20},
		{"idle memory", func(p point) float64 { return p.Resident }, 1.0 / 8},
	} {
		least, mid, most := r.spread(func(rd round) float64 {
			last := len(rd.Points) - 1
			best := c.of(rd.Points[0])
			for _, p := range rd.Points[:last] {
				best = min(best, c.of(p))
			}
			return c.of(rd.Points[last]) / max(best, 1e-9)
		})
		lines = append(lines, fmt.Sprintf("%-12s %.3f / %.3f / %.3f   must <= %.3f %s", c.name, least, mid, most, c.must, verdict(mid <= c.must)))
	}
	return r, lines, nil
}
