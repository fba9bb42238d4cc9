//go:build interop

package interop

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// smallFiles are the settings of both sides, so that everything rolls over.
// They are not in the files: brokers that share a directory must have the same.
var smallFiles = []string{
	"mappedFileSizeCommitLog=131072",
	"mappedFileSizeConsumeQueue=2000",
	"maxHashSlotNum=500",
	"maxIndexNum=1000",
	// Apache's broker throws an index file away that was not flushed when its
	// broker was killed. With this it scans the log from where that file began.
	"messageIndexSafe=true",
	"mappedFileSizeTimerLog=520",
	"recallMessageEnable=true",
}

const (
	diskMessages = 400 + 700 + 120 // of one round, see Disk.java
)

// diskVersions are those whose directories are exchanged.
func diskVersions() []string {
	return slices.DeleteFunc(slices.Clone(versions), func(v string) bool { return v == "5.5.0" })
}

// A disk is a store directory and the list of what was sent to it. Every
// broker that opens one of this test has the same address, which is part of
// the messages' ids, and the same name server.
type disk struct {
	c     *cluster
	store string
	list  string
	more  []string // settings besides smallFiles
}

func newDisk(t *testing.T, c *cluster, name string) *disk {
	t.Helper()
	dir := newDir(t, name)
	return &disk{c: c, store: filepath.Join(dir, "store"), list: filepath.Join(dir, "sent.tsv")}
}

// copied is the same in another place.
func (d *disk) copied(t *testing.T, name string) *disk {
	t.Helper()
	to := newDisk(t, d.c, name)
	if err := os.CopyFS(to.store, os.DirFS(d.store)); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(d.list)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, to.list, string(text))
	return to
}

// ours starts rmqbroker on the directory.
func (d *disk) ours(t *testing.T) *server {
	t.Helper()
	conf := filepath.Join(filepath.Dir(d.store), "ours.conf")
	lines := append([]string{"brokerClusterName=" + clusterName, "brokerName=" + d.c.called()}, smallFiles...)
	writeFile(t, conf, strings.Join(append(lines, d.more...), "\n")+"\n")
	s, _ := startServer(t, "rmqbroker", "rmqbroker ready", exec.Command(goBuild(t, "..", "./cmd/rmqbroker"),
		"-namesrv-listen", "none", "-n", d.c.namesrv, "-listen", d.c.broker, "-store", d.store, "-c", conf))
	d.c.waitBroker(t)
	return s
}

// apache starts Apache's broker on the directory.
func (d *disk) apache(t *testing.T, version string) *server {
	t.Helper()
	return startApacheBroker(t, version, javaHome(t, "disk-"+version), d.c, d.store, append(slices.Clone(smallFiles), d.more...)...)
}

// check lets "rmqbroker store check" look at the directory.
func (d *disk) check(t *testing.T, what string) {
	t.Helper()
	conf := filepath.Join(filepath.Dir(d.store), "sizes.conf")
	writeFile(t, conf, strings.Join(smallFiles, "\n")+"\n")
	out, err := output(t, patience, exec.Command(goBuild(t, "..", "./cmd/rmqbroker"), "store", "check", d.store, "-c", conf))
	if err != nil || !strings.HasSuffix(lastLine(out), " messages, 0 problems") {
		t.Errorf("store check of the directory %s: %v\n%s", what, err, out)
	}
}

// java runs Disk.java with the client of a version.
func (d *disk) java(t *testing.T, version string, args ...string) (string, error) {
	t.Helper()
	dir := javaHome(t, "disk-client")
	return output(t, patience, javaCommand(dir, javaClasses(t, version), toolFlags,
		"Disk", append([]string{args[0], d.c.namesrv, d.list}, args[1:]...)...))
}

// fill sends a round of messages to whatever broker has the directory.
func (d *disk) fill(t *testing.T, version, round string) {
	t.Helper()
	for _, topic := range []string{"DiskA", "DiskB", "DiskBatch"} {
		d.c.makeTopic(t, topic)
	}
	if out, err := d.java(t, version, "fill", round); err != nil {
		t.Fatalf("filling the store: %v\n%s", err, quiet(out))
	}
}

var diskCounts = regexp.MustCompile(`^messages (\d+) keys (\d+) offsets (\d+)$`)

// verify compares what the broker that has the directory now serves with what
// was sent. rounds is how many there were.
func (d *disk) verify(t *testing.T, version, from, to string, rounds int, committed bool) {
	t.Helper()
	for _, topic := range []string{"DiskA", "DiskB", "DiskBatch"} {
		d.c.waitTopic(t, topic)
	}
	out, err := d.java(t, version, "verify", fmt.Sprint(committed))
	m := diskCounts.FindStringSubmatch(lastLine(out))
	if err != nil || m == nil {
		t.Fatalf("disk %s -> %s: %v\n%s", from, to, err, quiet(out))
	}
	if n := number(t, m[1]); n != rounds*diskMessages {
		t.Errorf("disk %s -> %s: %d messages, want %d", from, to, n, rounds*diskMessages)
	}
	pairing("disk "+from, to, "%s", lastLine(out))
}

// TestDisk exchanges store directories: what our broker leaves, after a clean
// stop and after kill -9, is opened by Apache's, and the other way round.
func TestDisk(t *testing.T) {
	vs := diskVersions()
	if len(vs) == 0 {
		t.Skip("neither 5.3.3 nor 4.9.7 is among the versions")
	}
	home := func(t *testing.T) *cluster {
		ns := freePort(t)
		startNamesrv(t, vs[0], javaHome(t, "disk-namesrv"), ns)
		return &cluster{name: "disk", namesrv: fmt.Sprintf("127.0.0.1:%d", ns), broker: fmt.Sprintf("127.0.0.1:%d", freePort(t))}
	}
	beside(t, "ours to apache", true, func(t *testing.T) {
		clean := newDisk(t, home(t), "ours")
		b := clean.ours(t)
		clean.fill(t, vs[0], "first")
		if err := b.stop(); err != nil {
			t.Fatalf("rmqbroker on SIGTERM: %v", err)
		}
		clean.check(t, "that ours left")
		killed := clean.copied(t, "ours-killed")
		b = killed.ours(t)
		killed.fill(t, vs[0], "second")
		b.kill(t)
		killed.check(t, "that ours left when it was killed")
		for _, v := range vs {
			t.Run("clean "+v, func(t *testing.T) { openByApache(t, clean, v, "ours clean", 1, true) })
			t.Run("killed "+v, func(t *testing.T) { openByApache(t, killed, v, "ours killed", 2, false) })
		}
	})
	for _, v := range vs {
		beside(t, "apache "+v+" to ours", true, func(t *testing.T) {
			clean := newDisk(t, home(t), "apache-"+v)
			b := clean.apache(t, v)
			clean.fill(t, v, "first")
			if err := b.stop(); err != nil && !strings.Contains(err.Error(), "143") { // the JVM's way to report SIGTERM
				t.Fatalf("broker %s on SIGTERM: %v", v, err)
			}
			clean.check(t, "that Apache's broker left")
			killed := clean.copied(t, "apache-killed-"+v)
			openByOurs(t, clean, v, "apache "+v+" clean", 1, true)
			b = killed.apache(t, v)
			killed.fill(t, v, "second")
			b.kill(t)
			killed.check(t, "that Apache's broker left when it was killed")
			openByOurs(t, killed, v, "apache "+v+" killed", 2, false)
		})
	}
}

func openByApache(t *testing.T, d *disk, version, from string, rounds int, committed bool) {
	t.Helper()
	d = d.copied(t, "opened-"+version)
	b := d.apache(t, version)
	d.verify(t, version, from, "apache "+version, rounds, committed)
	b.kill(t) // nobody needs its store any more
}

func openByOurs(t *testing.T, d *disk, version, from string, rounds int, committed bool) {
	t.Helper()
	b := d.ours(t)
	d.verify(t, version, from, "ours", rounds, committed)
	if err := b.stop(); err != nil {
		t.Errorf("rmqbroker on SIGTERM: %v", err)
	}
	d.check(t, from+", after ours had it")
}
