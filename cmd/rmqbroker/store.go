package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/broker/store/inspect"
)

const storeUsage = `rmqbroker store reads a store directory without starting a broker. It never
writes to it, and can be used beside a running broker.

Usage:
  rmqbroker store check DIR [-c FILE]
  rmqbroker store dump DIR -topic T [-queue N] [-from OFF] [-max N] [-body N] [-c FILE]
  rmqbroker store stats DIR [-c FILE]

check  reads everything and compares it: records with their checksums and
       places, units of the consume queues and entries of the key index with
       their records, checkpoint and configuration. Each finding is one line:
       "damage: FILE at byte N: ..." or "note: ..." for what the next start
       of a broker puts right by itself, such as a torn tail. The last line is
         checked N files, N messages, N problems
       Exit status: 0 no damage, 1 damage, 2 bad usage or no store.
dump   prints one line per message, queue by queue in the order of offsets.
       What cannot be read goes to standard error; exit status 1 then.
stats  prints how much is there. It reads little more than the queues.

Flags:
  -c FILE    broker.conf with the sizes of files (mappedFileSizeCommitLog,
             mappedFileSizeConsumeQueue, maxHashSlotNum, maxIndexNum) and
             messageDelayLevel; without it they are found out from the files
  -topic T   topic to dump
  -queue N   only this queue
  -from OFF  first queue offset (default 0)
  -max N     at most so many messages (default 0: all)
  -body N    bytes of each body to print (default 100; -1: all)
`

// storeFlags are the flags of the store verbs.
type storeFlags struct {
	dir  string
	conf string
	sel  inspect.Selection
	body int
}

// storeMain is "rmqbroker store ...". A signal ends it.
func storeMain(args []string, stdout, stderr io.Writer, signals <-chan os.Signal) int {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	defer func() {
		cancel()
		<-ended
	}()
	go func() {
		defer close(ended)
		select {
		case <-signals:
			cancel()
		case <-ctx.Done():
		}
	}()
	verbs := map[string]func(context.Context, *inspect.Dir, *storeFlags, io.Writer, io.Writer) (int, error){
		"check": storeCheck, "dump": storeDump, "stats": storeStats,
	}
	code, err := exitUsage, error(nil)
	verb := ""
	if len(args) > 0 {
		verb = args[0]
	}
	run := verbs[verb]
	switch {
	case verb == "-h" || verb == "-help" || verb == "--help" || verb == "help":
		_, _ = io.WriteString(stdout, storeUsage)
		return exitOK
	case run == nil:
		err = fmt.Errorf("%w: check, dump or stats is needed, not %q", errUsage, verb)
	default:
		var f *storeFlags
		if f, err = parseStore(verb, args[1:]); errors.Is(err, flag.ErrHelp) {
			_, _ = io.WriteString(stdout, storeUsage)
			return exitOK
		}
		var d *inspect.Dir
		if err == nil {
			d, err = openStore(f)
		}
		if err == nil {
			code, err = run(ctx, d, f, stdout, stderr)
		}
	}
	if err != nil {
		fmt.Fprintf(stderr, "rmqbroker: store %s: %v\n", verb, err)
		if errors.Is(err, errUsage) {
			fmt.Fprintln(stderr, "Run rmqbroker store -h for help.")
		}
	}
	return code
}

// parseStore reads the flags of a verb; they may stand before and after the
// directory.
func parseStore(verb string, args []string) (*storeFlags, error) {
	f := &storeFlags{}
	fs := flag.NewFlagSet("store", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&f.conf, "c", "", "")
	queue := -1
	if verb == "dump" {
		fs.StringVar(&f.sel.Topic, "topic", "", "")
		fs.IntVar(&queue, "queue", -1, "")
		fs.Int64Var(&f.sel.From, "from", 0, "")
		fs.Int64Var(&f.sel.Max, "max", 0, "")
		fs.IntVar(&f.body, "body", 100, "")
	}
	var dirs []string
	for len(args) > 0 {
		if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
			return nil, err
		} else if err != nil {
			return nil, fmt.Errorf("%w: %w", errUsage, err)
		}
		if args = fs.Args(); len(args) > 0 {
			dirs, args = append(dirs, args[0]), args[1:]
		}
	}
	if len(dirs) != 1 {
		return nil, fmt.Errorf("%w: one directory is needed, got %d: %q", errUsage, len(dirs), dirs)
	}
	f.dir, f.sel.Queue = dirs[0], int32(queue)
	switch {
	case verb == "dump" && f.sel.Topic == "":
		return nil, fmt.Errorf("%w: dump needs -topic; stats lists the topics", errUsage)
	case int(f.sel.Queue) != queue || queue < -1 || f.sel.From < 0 || f.sel.Max < 0:
		return nil, fmt.Errorf("%w: -queue, -from and -max are numbers from 0 on", errUsage)
	}
	return f, nil
}

// openStore looks at the directory, with the sizes of the configuration file.
func openStore(f *storeFlags) (*inspect.Dir, error) {
	var sizes inspect.Sizes
	if f.conf != "" {
		var err error
		if sizes, err = confSizes(f.conf); err != nil {
			return nil, fmt.Errorf("%w: %w", errUsage, err)
		}
	}
	return inspect.Open(f.dir, sizes)
}

// confSizes takes from a broker.conf what it says about files. It may be that
// of an Apache broker with settings that this one would refuse.
func confSizes(path string) (s inspect.Sizes, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return s, err
	}
	props, err := parseProperties(string(text))
	if err != nil {
		return s, fmt.Errorf("%s: %w", path, err)
	}
	numbers := map[string]*int64{
		"mappedFileSizeCommitLog":    &s.CommitLog,
		"mappedFileSizeConsumeQueue": &s.ConsumeQueue,
		"maxHashSlotNum":             &s.IndexSlots,
		"maxIndexNum":                &s.IndexEntries,
	}
	for _, p := range props {
		if n := numbers[p.key]; n != nil {
			if *n, err = strconv.ParseInt(strings.TrimSpace(p.value), 10, 64); err != nil || *n <= 0 {
				return s, fmt.Errorf("%s: line %d: %s=%s: a number above 0 is needed", path, p.line, p.key, p.value)
			}
		}
		if p.key == "messageDelayLevel" {
			if s.Delays, err = store.ParseDelayLevels(p.value); err != nil {
				return s, fmt.Errorf("%s: line %d: %s=%s: %w", path, p.line, p.key, p.value, err)
			}
		}
	}
	const unit = 20 // brokers round up to whole units
	s.ConsumeQueue = (s.ConsumeQueue + unit - 1) / unit * unit
	return s, nil
}
