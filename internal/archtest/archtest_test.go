package archtest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestModule applies the rules to the module itself.
func TestModule(t *testing.T) {
	files, err := load("../..")
	require.NoError(t, err)
	require.Greater(t, len(files), 20, "too few files: is the root right?")
	for _, v := range check(files) {
		t.Error(v)
	}
}

// TestRules shows that each rule is caught when broken, and only then: every
// row is a file, or a few, and the rule that must be named.
func TestRules(t *testing.T) {
	const own = modulePath + "/"
	importing := func(pkg string, paths ...string) string {
		return "package " + pkg + "\n\nimport (\n\t_ \"" + strings.Join(paths, "\"\n\t_ \"") + "\"\n)\n"
	}
	tests := []struct {
		name  string
		files map[string]string
		want  string // part of the rule; empty: no violation
	}{
		{"allowed directions", map[string]string{
			"client.go":                        importing("rocketmq", own+"internal/bridge", own+"internal/client", "time"),
			"internal/client/a.go":             importing("client", own+"internal/remoting", own+"internal/retry"),
			"internal/remoting/a.go":           importing("remoting", own+"internal/wire", own+"internal/run"),
			"internal/wire/a.go":               importing("wire", "encoding/binary", "strconv"),
			"internal/wire/json/a.go":          importing("json", own+"internal/wire"),
			"internal/send/a.go":               importing("send", modulePath, own+"internal/client"),
			"producer/a.go":                    importing("producer", modulePath, own+"internal/send", own+"selector"),
			"txn/a.go":                         importing("txn", own+"producer"),
			"internal/broker/a.go":             importing("broker", own+"internal/remoting", own+"internal/broker/store"),
			"internal/pool/a.go":               importing("pool", "github.com/panjf2000/ants/v2"),
			"internal/retry/a.go":              importing("retry", "github.com/cenkalti/backoff/v4"),
			"internal/broker/store/mfile/a.go": importing("mfile", "github.com/edsrzf/mmap-go"),
			"testbroker/a.go":                  importing("testbroker", modulePath, own+"internal/broker", own+"internal/namesrv"),
			"cmd/rmqbroker/a.go":               importing("main", own+"testbroker", "log", "flag"),
			"examples/q/a.go":                  importing("main", own+"testbroker", own+"producer", own+"consumer", "github.com/schollz/progressbar/v3"),
		}, ""},
		{"tests see both sides", map[string]string{
			"producer/a_test.go":        importing("producer", own+"testbroker", own+"internal/broker", own+"consumer") + "// leak.Main(m)\n",
			"internal/client/a_test.go": importing("client_test", modulePath, "github.com/stretchr/testify/require") + "// leak.Main(m)\n",
		}, ""},
		{"third party in wire", map[string]string{"internal/wire/a.go": importing("wire", "golang.org/x/sys/cpu")}, "internal/wire imports the standard library only"},
		{"own package in wire", map[string]string{"internal/wire/a.go": importing("wire", own+"internal/run")}, "internal/wire imports the standard library only"},
		{"below wire", map[string]string{"internal/wire/x/a.go": importing("x", own+"internal/alloc")}, "internal/wire imports the standard library only"},
		{"root from the runtime", map[string]string{"internal/client/a.go": importing("client", modulePath)}, "never import the root"},
		{"root from connections", map[string]string{"internal/remoting/a.go": importing("remoting", modulePath)}, "never import the root"},
		{"root from the bridge", map[string]string{"internal/bridge/a.go": importing("bridge", modulePath)}, "never import the root"},
		{"server from the root", map[string]string{"client.go": importing("rocketmq", own+"internal/namesrv")}, "never import each other"},
		{"server from a role", map[string]string{"consumer/a.go": importing("consumer", own+"internal/broker/store")}, "never import each other"},
		{"server from the pipeline", map[string]string{"internal/consume/a.go": importing("consume", own+"internal/broker")}, "never import each other"},
		{"client from the broker", map[string]string{"internal/broker/a.go": importing("broker", own+"internal/client")}, "never import each other"},
		{"root from the name server", map[string]string{"internal/namesrv/a.go": importing("namesrv", modulePath)}, "never import each other"},
		{"selector from the store", map[string]string{"internal/broker/store/a.go": importing("store", own+"selector")}, "never import each other"},
		{"shared imports a side", map[string]string{"internal/filter/a.go": importing("filter", own+"internal/broker")}, "imports neither"},
		{"shared imports the other side", map[string]string{"internal/alloc/a.go": importing("alloc", own+"rebalance")}, "imports neither"},
		{"testbroker from a role", map[string]string{"producer/a.go": importing("producer", own+"testbroker")}, "import testbroker"},
		{"testbroker from the root", map[string]string{"client.go": importing("rocketmq", own+"testbroker")}, "import testbroker"},
		{"program imported", map[string]string{"testbroker/a.go": importing("testbroker", own+"cmd/rmqbroker")}, "nothing imports programs"},
		{"shared half of examples", map[string]string{"examples/q/a.go": importing("main", own+"examples/internal/demo")}, ""},
		{"shared half of examples elsewhere", map[string]string{"testbroker/a.go": importing("testbroker", own+"examples/internal/demo")}, "nothing imports programs"},
		{"role from role", map[string]string{"producer/a.go": importing("producer", own+"consumer")}, "roles never import each other"},
		{"producer from txn only", map[string]string{"producer/a.go": importing("producer", own+"txn")}, "roles never import each other"},
		{"ants elsewhere", map[string]string{"consumer/a.go": importing("consumer", "github.com/panjf2000/ants/v2")}, "github.com/panjf2000/ants"},
		{"backoff elsewhere", map[string]string{"internal/remoting/a.go": importing("remoting", "github.com/cenkalti/backoff/v4")}, "github.com/cenkalti/backoff"},
		{"mmap elsewhere", map[string]string{"internal/broker/store/a.go": importing("store", "github.com/edsrzf/mmap-go")}, "github.com/edsrzf/mmap-go"},
		{"testify in a library", map[string]string{"testbroker/a.go": importing("testbroker", "github.com/stretchr/testify/require")}, "github.com/stretchr/testify"},
		{"testing in a library", map[string]string{"testbroker/a.go": importing("testbroker", "testing")}, "may import testing"},
		{"leak in a library", map[string]string{"testbroker/a.go": importing("testbroker", own+"internal/leak")}, "test support is for tests"},
		{"progress bar in a library", map[string]string{"producer/a.go": importing("producer", "github.com/schollz/progressbar/v3")}, "progressbar"},
		{"log in a library", map[string]string{"producer/a.go": importing("producer", "log")}, "may import log"},
		{"slog is not log", map[string]string{"producer/a.go": importing("producer", "log/slog")}, ""},

		{"go statement", map[string]string{"producer/a.go": "package producer\n\nfunc f() { go f() }\n"}, "started through internal/run"},
		{"go statement for another system", map[string]string{"producer/a_windows.go": "//go:build ignore\n\npackage producer\n\nfunc f() { go f() }\n"}, "started through internal/run"},
		{"go statement in run, a test and a program", map[string]string{
			"internal/run/a.go":  "package run\n\nfunc f() { go f() }\n",
			"producer/a_test.go": "package producer\n\nfunc f() { go f() } // leak.Main(m)\n",
			"examples/q/main.go": "package main\n\nfunc f() { go f() }\n",
		}, ""},
		{"sleep", map[string]string{"producer/a.go": "package producer\n\nimport \"time\"\n\nfunc f() { time.Sleep(1) }\n"}, "not by time.Sleep"},
		{"sleep under another name", map[string]string{"producer/a.go": "package producer\n\nimport clock \"time\"\n\nvar nap = clock.Sleep\n"}, "not by time.Sleep"},
		{"somebody else's sleep", map[string]string{"producer/a.go": "package producer\n\nimport \"" + own + "internal/clock\"\n\nfunc f() { clock.Sleep(1) }\n"}, ""},
		{"server reads the system's time", map[string]string{"internal/broker/a.go": "package broker\n\nimport \"time\"\n\nvar now = time.Now\n"}, "from internal/clock"},
		{"client reads the system's time", map[string]string{"producer/a.go": "package producer\n\nimport \"time\"\n\nvar now = time.Now\n"}, ""},
		{"prints", map[string]string{"producer/a.go": "package producer\n\nimport \"fmt\"\n\nfunc f() { fmt.Println() }\n"}, "print nothing"},
		{"prints by builtin", map[string]string{"producer/a.go": "package producer\n\nfunc f() { println() }\n"}, "print nothing"},
		{"writes to stderr", map[string]string{"producer/a.go": "package producer\n\nimport \"os\"\n\nvar w = os.Stderr\n"}, "print nothing"},
		{"exits", map[string]string{"producer/a.go": "package producer\n\nimport \"os\"\n\nfunc f() { os.Exit(1) }\n"}, "do not end the process"},
		{"init", map[string]string{"producer/a.go": "package producer\n\nfunc init() {}\n"}, "importing a package does nothing"},
		{"a method called init", map[string]string{"producer/a.go": "package producer\n\ntype t int\n\nfunc (t) init() {}\n"}, ""},
		{"mark of work left", map[string]string{"producer/a.go": "package producer\n\n// " + "TO" + "DO: more\n"}, "finished or filed"},
		{"mark of work left in a test", map[string]string{"producer/a_test.go": "package producer // leak.Main(m)\n\n/* FIX" + "ME */\n"}, "finished or filed"},
		{"a name that contains the mark", map[string]string{"producer/a.go": "package producer\n\n// SCHEDULE_TOPIC_XXXX and TODOS\n"}, ""},
		{"directive nobody reads", map[string]string{"producer/a.go": "package producer\n\nvar x = 1 //no" + "lint:all // why\n"}, "findings are silenced"},
		{"not ASCII", map[string]string{"producer/a.go": "package producer\n\n// caf\xc3\xa9\n"}, "ASCII"},
		{"carriage return", map[string]string{"producer/a.go": "package producer\r\n"}, "ASCII"},
		{"long file", map[string]string{"producer/a.go": "package producer\n" + strings.Repeat("\n", longest)}, "one job"},
		{"long generated file", map[string]string{"producer/a.go": "// Code generated by mockgen. DO NOT EDIT.\n\npackage producer\n" + strings.Repeat("\n", longest)}, ""},
		{"no leak check", map[string]string{"producer/a_test.go": "package producer\n"}, "leaked goroutines"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var files []*source
			for name, text := range tt.files {
				s, err := parse(name, []byte(text))
				require.NoError(t, err)
				files = append(files, s)
			}
			got := check(files)
			if tt.want == "" {
				require.Empty(t, got)
				return
			}
			require.NotEmpty(t, got)
			require.Contains(t, got[0].rule, tt.want)
		})
	}
}

// TestLoad shows what is read: files for other systems are, test data and
// nested modules are not.
func TestLoad(t *testing.T) {
	files, err := load("../..")
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, s := range files {
		seen[s.path] = true
		require.NotContains(t, s.path, "testdata")
		require.False(t, within(s.dir, []string{"bench", "tools", "interop/goclient"}), "%s is of another module", s.path)
	}
	require.True(t, seen["internal/archtest/load_test.go"])
	require.True(t, seen["interop/main_test.go"], "files behind build tags count")
}
