package main

import (
	"fmt"
	"slices"
)

// A report is all rounds of a workload.
type report struct {
	Workload string
	Broker   string // the kind of broker
	Must     float64
	Rounds   []round
	Dropped  int // rounds repeated because the host took too much time
	limits   []limit
}

// A round has one point of each client, in the order of clients.
type round struct {
	Points []point
}

func (r round) stolen() (most float64) {
	for _, p := range r.Points {
		most = max(most, p.Stolen)
	}
	return most
}

// ratio is what the second client does to what the first does.
func (r round) ratio(of func(point) float64) float64 {
	base := of(r.Points[0])
	if base == 0 {
		return 0
	}
	return of(r.Points[1]) / base
}

func rate(p point) float64      { return p.Rate }
func cpu(p point) float64       { return p.CPU }
func allocs(p point) float64    { return p.Allocs }
func allocated(p point) float64 { return p.Bytes }

func (p point) String() string {
	if p.Busy > 0 {
		return fmt.Sprintf("%-8s %6.2f %% of a core %6.1f MiB resident", p.Client, p.Busy, p.Resident)
	}
	if p.P99 > 0 {
		return fmt.Sprintf("%-8s %8.0f msg/s %6.2f us CPU (broker %5.2f) %6.2f ms p50 %6.2f ms p99", p.Client, p.Rate, p.CPU, p.BrokerCPU, p.P50, p.P99)
	}
	return fmt.Sprintf("%-8s %8.0f msg/s %6.2f us CPU (broker %5.2f) %6.2f allocs %6.0f bytes %5.3f writes",
		p.Client, p.Rate, p.CPU, p.BrokerCPU, p.Allocs, p.Bytes, p.Writes)
}

func (r round) print(n int) {
	for i, p := range r.Points {
		fmt.Printf("  round %d  %s", n, p)
		if p.Calls > 0 {
			fmt.Printf("  (the calls took %.0f/s)", p.Calls)
		}
		if i > 0 && p.Busy == 0 && p.P99 == 0 {
			fmt.Printf("  ratio %.2f", r.ratio(rate))
		}
		fmt.Println()
	}
}

// printSummary prints each client's medians.
func (r report) printSummary(stolen float64) {
	for i := range r.Rounds[0].Points {
		if r.limits != nil {
			break // they stand in the closing table
		}
		col := func(of func(point) float64) float64 {
			_, mid, _ := r.spread(func(rd round) float64 { return of(rd.Points[i]) })
			return mid
		}
		fmt.Printf("  median   %s\n", point{
			Client: r.Rounds[0].Points[i].Client, Rate: col(rate), CPU: col(cpu), Allocs: col(allocs), Bytes: col(allocated),
			Writes:    col(func(p point) float64 { return p.Writes }),
			BrokerCPU: col(func(p point) float64 { return p.BrokerCPU }),
		})
	}
	if r.Dropped > 0 {
		fmt.Printf("  %d rounds were repeated: the host took more than %g %% of the machine's time\n", r.Dropped, stolen)
	}
}

// brokerText is what a kind of broker makes of the ratios.
var brokerText = map[string]string{
	onNull: "on a null broker, which answers at once and stores nothing: what is asked (must) is asked here",
	onOurs: "on rmqbroker, whose own work counts in both clients' rates",
}

// printRatios prints the closing tables, one for each kind of broker.
func printRatios(all []report) {
	kind := ""
	for _, r := range all {
		if r.Broker != kind && r.limits == nil {
			kind = r.Broker
			fmt.Printf("\nratio ours / official, per round: min / median / max\n%s\n", brokerText[kind])
		}
		if r.limits != nil {
			continue
		}
		fmt.Println(r.ratioLine())
	}
	for i, r := range all {
		if r.limits == nil {
			continue
		}
		if i == 0 || all[i-1].limits == nil {
			fmt.Println("\ncosts of ours, per round: min / median / max")
		}
		for _, line := range r.costLines() {
			fmt.Println(line)
		}
	}
}

// ratioLine is one line of the closing table.
func (r report) ratioLine() string {
	min, mid, max := r.spread(func(rd round) float64 { return rd.ratio(rate) })
	_, c, _ := r.spread(func(rd round) float64 { return rd.ratio(cpu) })
	_, a, _ := r.spread(func(rd round) float64 { return rd.Points[1].Allocs })
	_, base, _ := r.spread(func(rd round) float64 { return rd.Points[0].Allocs })
	return fmt.Sprintf("%-12s rate %5.2f / %5.2f / %5.2f   must >= %g %s   CPU per message x %.2f   allocs per message %.2f, official %.2f",
		r.Workload, min, mid, max, r.Must, verdict(mid >= r.Must), c, a, base)
}

// spread is the least, the middle and the greatest value over the rounds.
func (r report) spread(of func(round) float64) (least, middle, most float64) {
	v := make([]float64, len(r.Rounds))
	for i, rd := range r.Rounds {
		v[i] = of(rd)
	}
	slices.Sort(v)
	return v[0], v[len(v)/2], v[len(v)-1]
}
