package archtest

import (
	"fmt"
	"slices"
	"strings"
)

// The two sides never import each other. A name stands for the package and
// everything below it; "" is the root package alone.
var (
	clientSide = []string{"", "producer", "consumer", "txn", "admin", "selector", "rebalance",
		"internal/bridge", "internal/client", "internal/send", "internal/consume", "internal/pop", "internal/msgtrace", "internal/view"}
	serverSide = []string{"internal/broker", "internal/namesrv"}
	// Where they meet. These import neither side.
	shared = []string{"internal/wire", "internal/remoting", "internal/filter", "internal/alloc", "internal/clock",
		"internal/run", "internal/pool", "internal/retry", "internal/inflate", "internal/fault", "internal/vnet", "internal/leak"}
	// Roles share machinery through internal/send, consume and pop, not
	// through each other.
	roles = []string{"producer", "consumer", "txn", "admin"}
	// Internal packages above the root package. All others stay below it.
	aboveRoot = []string{"internal/send", "internal/consume", "internal/pop", "internal/msgtrace", "internal/view", "internal/mocks"}
	// Helpers of tests, which may import package testing themselves.
	testSupport = []string{"internal/leak", "internal/golden", "internal/mocks", "internal/archtest", "interop"}
)

// onlyIn says which packages may import a dependency in files that are not
// tests. An empty list means tests only.
var onlyIn = map[string][]string{
	"github.com/panjf2000/ants":            {"internal/pool"},
	"github.com/cenkalti/backoff":          {"internal/retry"},
	"github.com/edsrzf/mmap-go":            {"internal/broker/store/mfile"},
	"github.com/stretchr/testify":          {"internal/mocks"},
	"go.uber.org/mock":                     {"internal/mocks"},
	"go.uber.org/goleak":                   {"internal/leak"},
	"pgregory.net/rapid":                   {},
	"github.com/schollz/progressbar":       {"examples", "cmd"},
	"golang.org/x/sync/errgroup":           {"examples", "cmd"},
	"testing":                              testSupport,
	"log":                                  {"examples", "cmd"},
	"flag":                                 {"examples", "cmd"},
	"github.com/apache/rocketmq-client-go": {},
}

// within reports whether a package is one of the list or below one.
func within(dir string, list []string) bool {
	return slices.ContainsFunc(list, func(p string) bool {
		return dir == p || p != "" && strings.HasPrefix(dir, p+"/")
	})
}

// covers reports whether an import path is the module or package named by
// prefix, in any major version.
func covers(prefix, imported string) bool {
	return imported == prefix || strings.HasPrefix(imported, prefix+"/") && prefix != "testing" && prefix != "log" && prefix != "flag"
}

// checkImports judges the imports of one file. Tests may see both sides, the
// layers above them, and every dependency of the module.
func checkImports(s *source) (out []violation) {
	if s.test {
		return nil
	}
	bad := func(rule, imported string) {
		out = append(out, violation{rule, s.path, "imports " + imported})
	}
	for _, imported := range s.imports {
		dir, own := strings.CutPrefix(imported, "./")
		if imported == "." {
			dir, own = "", true
		}
		if !own {
			for prefix, allowed := range onlyIn {
				if covers(prefix, imported) && !within(s.dir, allowed) {
					bad(fmt.Sprintf("only %v may import %s", allowed, prefix), imported)
				}
			}
			if first, _, _ := strings.Cut(imported, "/"); strings.Contains(first, ".") && within(s.dir, []string{"internal/wire"}) {
				bad("internal/wire imports the standard library only", imported)
			}
			continue
		}
		if within(s.dir, []string{"internal/wire"}) && !within(dir, []string{"internal/wire"}) {
			bad("internal/wire imports the standard library only", imported)
		}
		if dir == "" && strings.HasPrefix(s.dir, "internal/") && !within(s.dir, aboveRoot) {
			bad("internal/client and below never import the root package", imported)
		}
		if within(s.dir, clientSide) && within(dir, serverSide) || within(s.dir, serverSide) && within(dir, clientSide) {
			bad("client side and server side never import each other", imported)
		}
		if within(s.dir, shared) && (within(dir, clientSide) || within(dir, serverSide)) {
			bad("what both sides share imports neither", imported)
		}
		if within(dir, []string{"testbroker"}) && !within(s.dir, []string{"testbroker", "cmd", "examples"}) {
			bad("only tests, commands and examples import testbroker", imported)
		}
		common := within(dir, []string{"examples/internal"}) && within(s.dir, []string{"examples"})
		if within(dir, []string{"cmd", "examples", "interop", "internal/archtest"}) && !common {
			bad("nothing imports programs and test suites", imported)
		}
		if within(s.dir, roles) && within(dir, roles) && role(s.dir) != role(dir) && !(role(s.dir) == "txn" && role(dir) == "producer") {
			bad("roles never import each other, except txn the producer", imported)
		}
		if within(dir, testSupport) && !within(s.dir, testSupport) {
			bad("test support is for tests", imported)
		}
	}
	return out
}

func role(dir string) string {
	first, _, _ := strings.Cut(dir, "/")
	return first
}
