//go:build interop

package interop

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// versions of Apache RocketMQ, the newest first.
var versions = []string{"5.5.0", "5.3.3", "4.9.7"}

// work is the directory of this run: binaries, configurations, logs, stores.
var work string

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if err := prerequisites(); err != nil {
		fmt.Fprintln(os.Stderr, "interop:", err)
		return 1
	}
	if v := os.Getenv("INTEROP_VERSIONS"); v != "" {
		versions = strings.Split(v, ",")
	}
	var err error
	if work, err = os.MkdirTemp("", "rocketmq-interop-"); err != nil {
		fmt.Fprintln(os.Stderr, "interop:", err)
		return 1
	}
	if os.Getenv("INTEROP_KEEP") != "" {
		fmt.Println("interop: files stay in", work)
	} else {
		defer os.RemoveAll(work)
	}
	flag.Parse()
	if !given("test.parallel") { // what runs at once mostly waits
		if err := flag.Set("test.parallel", "6"); err != nil {
			fmt.Fprintln(os.Stderr, "interop:", err)
			return 1
		}
	}
	return m.Run()
}

// given says whether the command line has the flag.
func given(name string) (is bool) {
	flag.Visit(func(f *flag.Flag) { is = is || f.Name == name })
	return is
}

// prerequisites reports what is missing and how to get it. The suite fails
// instead of skipping: a green run means that the pairings were run.
func prerequisites() error {
	var missing []string
	for _, tool := range []string{"java", "javac", "mvn"} {
		if _, err := exec.LookPath(tool); err != nil {
			missing = append(missing, tool)
		}
	}
	if len(missing) == 0 {
		out, err := exec.Command("java", "-version").CombinedOutput()
		if err != nil {
			return fmt.Errorf("java -version: %w: %s", err, out)
		}
		found := regexp.MustCompile(`version "(\d+)`).FindSubmatch(out)
		if found == nil {
			return fmt.Errorf("cannot tell the version of java from %q", out)
		}
		if n, _ := strconv.Atoi(string(found[1])); n < 17 {
			missing = append(missing, fmt.Sprintf("a newer java (17 or later, this is %d)", n))
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("missing on the PATH: %s\n"+
		"  The suite runs the real Apache RocketMQ; it needs a JDK (17 or newer) and Maven.\n"+
		"  Debian, Ubuntu:  apt-get update && apt-get install -y --no-install-recommends openjdk-17-jdk-headless maven\n"+
		"  macOS:           brew install openjdk@17 maven",
		strings.Join(missing, ", "))
}

// newDir makes a directory of its own under the run's.
func newDir(t *testing.T, name string) string {
	t.Helper()
	dir, err := os.MkdirTemp(work, name+"-")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// goBuild builds a main package and returns the binary. dir is the module's
// directory relative to this one.
func goBuild(t *testing.T, dir, pkg string) string {
	t.Helper()
	building.Lock()
	defer building.Unlock()
	bin := filepath.Join(work, filepath.Base(pkg)+"-"+filepath.Base(dir))
	if _, err := os.Stat(bin); err == nil {
		return bin
	}
	cmd := exec.Command("go", "build", "-o", bin, pkg)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build %s: %v\n%s", pkg, err, out)
	}
	return bin
}

// pairing prints the line of a finished pairing.
func pairing(from, to, format string, args ...any) {
	fmt.Printf("pairing: %s -> %s: %s\n", from, to, fmt.Sprintf(format, args...))
}
