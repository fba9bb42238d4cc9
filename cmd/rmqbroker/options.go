package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/gorocketmq/rocketmq/internal/broker"
)

// options is what the command line and the configuration file ask for.
type options struct {
	namesrvListen string // "": no name server of our own
	broker        broker.Config
	verbose       bool
	warnings      []string
}

const usage = `rmqbroker runs a RocketMQ broker, by default with a name server of its own.
Clients, brokers and tools of Apache RocketMQ can use it.

Usage: rmqbroker [flags]
       rmqbroker store check|dump|stats DIR   read a store; see rmqbroker store -h

Without flags it starts a name server on 127.0.0.1:9876 and a broker on
127.0.0.1:10911, creates topics when they are first used, and keeps its data in
%s

When both are ready it prints one line to standard output:

  rmqbroker ready namesrv=ADDR broker=ADDR store=DIR

The log goes to standard error. SIGINT (Ctrl-C) or SIGTERM stops it cleanly; a
second one at once. Exit status: 0 stopped as asked, 1 failure, 2 bad usage.

Flags:
  -namesrv-listen ADDR  where the name server listens (default %s);
                        "none": no name server, -n is then needed
  -n ADDRS              name servers elsewhere to register with, separated by ";";
                        without -namesrv-listen no own one is started
  -listen ADDR          where the broker listens (default %s); clients are
                        told this address, or one of this machine's addresses if
                        ADDR is 0.0.0.0; port 0 takes a free one
  -store DIR            folder of the data, created if missing
  -c FILE               broker.conf, a Java properties file; flags override it
  -v                    log what happens, not only what is wrong
  -h, -help             this text

Keys of the configuration file, with Apache's meanings:
%s
If brokerIP1 is set and bindAddress is not, the broker listens on all
interfaces. Other keys have no effect and are named in a warning. What would
change a promise (brokerRole=SLAVE, DLedger, access control) is refused until it is
implemented.

Examples:
  rmqbroker
  rmqbroker -store /var/lib/rmq -listen 10.0.0.5:10911 -namesrv-listen 10.0.0.5:9876
  rmqbroker -namesrv-listen none -n "ns1:9876;ns2:9876" -c broker.conf
`

const defaultNamesrvListen = "127.0.0.1:9876"

// errUsage is wrapped by everything that is wrong with the command line or the
// configuration file.
var errUsage = errors.New("bad usage")

// parse reads the command line. flag.ErrHelp means that help was asked for and
// printed to help.
func parse(args []string, help io.Writer) (*options, error) {
	o := &options{broker: broker.DefaultConfig()}
	o.broker.Store.Dir = defaultStore()
	fs := flag.NewFlagSet("rmqbroker", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	namesrv := fs.String("namesrv-listen", defaultNamesrvListen, "")
	others := fs.String("n", "", "")
	listen := fs.String("listen", o.broker.Listen, "")
	dir := fs.String("store", "", "")
	conf := fs.String("c", "", "")
	fs.BoolVar(&o.verbose, "v", false, "")
	if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(help, usage, o.broker.Store.Dir, defaultNamesrvListen, o.broker.Listen, keyList())
		return nil, err
	} else if err != nil {
		return nil, fmt.Errorf("%w: %w", errUsage, err)
	}
	if fs.NArg() > 0 {
		return nil, fmt.Errorf("%w: unexpected argument %q", errUsage, fs.Arg(0))
	}
	set := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { set[f.Name] = true })

	if *dir != "" {
		o.broker.Store.Dir = *dir
	}
	if *conf != "" {
		var err error
		if o.warnings, err = loadConf(&o.broker, *conf); err != nil {
			return nil, fmt.Errorf("%w: %w", errUsage, err)
		}
	}
	if *dir != "" {
		o.broker.Store.Dir = *dir
	}
	if set["listen"] {
		o.broker.Listen, o.broker.AdvertiseAddr = *listen, ""
	}
	if set["n"] {
		o.broker.NameServers = splitAddrs(*others)
	}
	o.namesrvListen = *namesrv
	if o.namesrvListen == "none" || !set["namesrv-listen"] && len(o.broker.NameServers) > 0 {
		o.namesrvListen = ""
	}
	return o, o.check()
}

func (o *options) check() error {
	var errs []error
	addr := func(name, a string) {
		if _, _, err := net.SplitHostPort(a); err != nil {
			errs = append(errs, fmt.Errorf("%s %q: host:port is needed", name, a))
		}
	}
	if o.namesrvListen != "" {
		addr("-namesrv-listen", o.namesrvListen)
	} else if len(o.broker.NameServers) == 0 {
		errs = append(errs, errors.New("no name server: nobody would find the broker; give -n or leave -namesrv-listen on"))
	}
	for _, a := range o.broker.NameServers {
		addr("name server", a)
	}
	addr("-listen", o.broker.Listen)
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	return nil
}

func splitAddrs(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ';' || r == ',' || r == ' ' })
}

// defaultStore is where programs of this system keep what must survive but is
// not the user's own document.
func defaultStore() string {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "rmqbroker")
	}
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		if dir, err := os.UserConfigDir(); err == nil {
			return filepath.Join(dir, "rmqbroker")
		}
	}
	if home, err := os.UserHomeDir(); err == nil {
		return filepath.Join(home, ".local", "state", "rmqbroker")
	}
	return "rmqdata"
}

// keyList is the keys the broker understands, a few on a line.
func keyList() string {
	var b strings.Builder
	width := 0
	for _, k := range broker.Keys() {
		if width == 0 || width+len(k) > 76 {
			if width > 0 {
				b.WriteByte('\n')
			}
			b.WriteString(" ")
			width = 1
		}
		b.WriteString(" " + k)
		width += 1 + len(k)
	}
	return b.String() + "\n"
}
