//go:build interop

package interop

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// What is made once is not made by several tests at once.
var fetching, compiling, building sync.Mutex

// fetchJars returns the class path of one Apache version. Maven fetches the
// jars into the user's cache directory unless a complete copy is there.
func fetchJars(t *testing.T, version string) string {
	t.Helper()
	fetching.Lock()
	defer fetching.Unlock()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(cache, "gorocketmq-interop", version)
	lib, complete := filepath.Join(dir, "lib"), filepath.Join(dir, "complete")
	if _, err := os.Stat(complete); err == nil {
		return filepath.Join(lib, "*") // java expands it
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	out, err := output(t, 10*time.Minute, exec.Command("mvn", "-q", "-B", "-f", "pom.xml",
		"dependency:copy-dependencies", "-DincludeScope=runtime",
		"-Drocketmq.version="+version, "-DoutputDirectory="+lib))
	if err != nil {
		t.Fatalf("maven could not fetch Apache RocketMQ %s: %v\n%s", version, err, out)
	}
	writeFile(t, complete, "")
	t.Logf("fetched Apache RocketMQ %s in %v", version, time.Since(start).Round(time.Second))
	return filepath.Join(lib, "*")
}

// javaHome makes a directory that serves as ROCKETMQ_HOME and as the user's
// home of JVMs, so that configuration is read and logs are written there.
func javaHome(t *testing.T, name string) string {
	t.Helper()
	dir := newDir(t, name)
	if err := os.CopyFS(filepath.Join(dir, "conf"), os.DirFS("conf")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// toolFlags suit JVMs that live for a few seconds.
var toolFlags = []string{"-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"}

func serverFlags(heap string) []string {
	return []string{"-Xms" + heap, "-Xmx" + heap, "-XX:MaxDirectMemorySize=512m", "-XX:TieredStopAtLevel=1", // they live for a minute
		"-Dtls.server.mode=disabled", // nobody uses it, and the keys that servers make at their start take half of it
		"--add-opens=java.base/java.nio=ALL-UNNAMED", "--add-opens=java.base/jdk.internal.ref=ALL-UNNAMED"}
}

// javaCommand is a JVM whose home is dir.
func javaCommand(dir, classPath string, flags []string, main string, args ...string) *exec.Cmd {
	all := append([]string{"-Duser.home=" + dir, "-cp", classPath}, flags...)
	cmd := exec.Command("java", append(append(all, main), args...)...)
	cmd.Dir = dir
	for _, kv := range os.Environ() { // settings that would reach into the run
		if !strings.HasPrefix(kv, "NAMESRV_ADDR=") && !strings.HasPrefix(kv, "JAVA_TOOL_OPTIONS=") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	cmd.Env = append(cmd.Env, "ROCKETMQ_HOME="+dir)
	return cmd
}

// javaClasses is the class path of the suite's Java programs and of one version
// of Apache's. They are compiled against it once.
func javaClasses(t *testing.T, version string) string {
	t.Helper()
	compiling.Lock()
	defer compiling.Unlock()
	jars, dir := fetchJars(t, version), filepath.Join(work, "classes-"+version)
	if _, err := os.Stat(dir); err != nil {
		sources, err := filepath.Glob(filepath.Join("java", "*.java"))
		if err != nil {
			t.Fatal(err)
		}
		if out, err := output(t, patience, exec.Command("javac", append([]string{"-nowarn", "-cp", jars, "-d", dir}, sources...)...)); err != nil {
			_ = os.RemoveAll(dir)
			t.Fatalf("javac: %v\n%s", err, out)
		}
	}
	return dir + string(os.PathListSeparator) + jars
}

// roundTripJava sends and receives n messages with the Java client of a
// version and returns the counts its last line shows.
func roundTripJava(t *testing.T, version string, c *cluster, topic, group string, n int) string {
	t.Helper()
	dir := javaHome(t, "java-client-"+version)
	out, err := output(t, patience, javaCommand(dir, javaClasses(t, version), toolFlags,
		"RoundTrip", c.namesrv, topic, group, fmt.Sprint(n)))
	return checkCounts(t, out, err, n)
}

// roundTripGo does the same with the official Go client.
func roundTripGo(t *testing.T, c *cluster, topic, group string, n int) string {
	t.Helper()
	cmd := exec.Command(goBuild(t, "goclient", "."), "-namesrv", c.namesrv, "-topic", topic, "-group", group, "-n", fmt.Sprint(n))
	cmd.Dir = newDir(t, "go-client")
	cmd.Env = append(os.Environ(), "HOME="+cmd.Dir, "ROCKETMQ_GO_LOG_LEVEL=error")
	out, err := output(t, patience, cmd)
	return checkCounts(t, out, err, n)
}

func checkCounts(t *testing.T, out string, err error, n int) string {
	t.Helper()
	want := fmt.Sprintf("sent %d received %d missing 0 duplicates 0 altered 0", n, n)
	if got := lastLine(out); err != nil || got != want {
		t.Fatalf("%v, last line %q, want %q; output:\n%s", err, got, want, quiet(out))
	}
	return want
}

// quiet drops the lines with which logging libraries announce themselves, and
// those with which members of groups tell what they do.
func quiet(out string) string {
	var b strings.Builder
	for line := range strings.Lines(out) {
		if !strings.HasPrefix(line, "call ") && !strings.Contains(line, "|-") && !strings.HasPrefix(line, "SLF4J") && !strings.Contains(line, "RocketMQLog") {
			b.WriteString(line)
		}
	}
	return b.String()
}
