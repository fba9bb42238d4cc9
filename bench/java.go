package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// javaSettings say how Apache's broker is run.
type javaSettings struct {
	versions []string
	interop  string // the directory interop of the repository: pom.xml and log settings
	heap     string
	conf     string // further lines of broker.conf
	warm     time.Duration
	warmMin  int
}

// fetchJars returns the class path of a version, fetched once by Maven into
// the same place as the interoperability suite's.
func (j javaSettings) fetchJars(version string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "gorocketmq-interop", version)
	lib, complete := filepath.Join(dir, "lib"), filepath.Join(dir, "complete")
	if _, err := os.Stat(complete); err == nil {
		return filepath.Join(lib, "*"), nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	out, err := exec.Command("mvn", "-q", "-B", "-f", filepath.Join(j.interop, "pom.xml"), "dependency:copy-dependencies",
		"-DincludeScope=runtime", "-Drocketmq.version="+version, "-DoutputDirectory="+lib).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("maven could not fetch Apache RocketMQ %s (a JDK 17 and Maven are needed): %w\n%s", version, err, out)
	}
	return filepath.Join(lib, "*"), os.WriteFile(complete, nil, 0o600)
}

// java is a JVM with its home in dir.
func (j javaSettings) java(ctx context.Context, dir, jars string, heap, main, conf string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "java", "-Duser.home="+dir, "-cp", jars, "-Xms"+heap, "-Xmx"+heap, "-XX:+UseG1GC",
		"-XX:MaxDirectMemorySize=1g", "--add-opens=java.base/java.nio=ALL-UNNAMED",
		"--add-opens=java.base/jdk.internal.ref=ALL-UNNAMED", main, "-c", conf)
	cmd.Dir = dir
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "NAMESRV_ADDR=") && !strings.HasPrefix(kv, "JAVA_TOOL_OPTIONS=") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	cmd.Env = append(cmd.Env, "ROCKETMQ_HOME="+dir)
	return cmd
}

// launchJava starts Apache's name server and broker. started is when the
// broker's process was, for the name server comes first.
func launchJava(ctx context.Context, s settings, version, flush string) (b *broker, started time.Time, err error) {
	jars, err := s.java.fetchJars(version)
	if err != nil {
		return nil, started, err
	}
	if b, err = newBroker(s); err != nil {
		return nil, started, err
	}
	port, err := freeRange()
	if err != nil {
		return nil, started, errors.Join(err, os.RemoveAll(b.dir))
	}
	b.addr = "127.0.0.1:" + strconv.Itoa(port)
	_, nsPort, _ := net.SplitHostPort(b.namesrv)
	nsConf, conf := filepath.Join(b.dir, "namesrv.conf"), filepath.Join(b.dir, "broker.conf")
	store := filepath.Join(b.dir, "store")
	err = errors.Join(
		os.CopyFS(filepath.Join(b.dir, "conf"), os.DirFS(filepath.Join(s.java.interop, "conf"))),
		os.WriteFile(nsConf, []byte("listenPort="+nsPort+"\nbindAddress=127.0.0.1\n"), 0o600),
		os.WriteFile(conf, []byte(strings.Join([]string{
			"brokerName=bench", "brokerId=0", "brokerRole=ASYNC_MASTER", "brokerIP1=127.0.0.1", "brokerIP2=127.0.0.1",
			"bindAddress=127.0.0.1", "listenPort=" + strconv.Itoa(port), "haListenPort=" + strconv.Itoa(port+1),
			"namesrvAddr=" + b.namesrv, "storePathRootDir=" + store, "storePathCommitLog=" + filepath.Join(store, "commitlog"),
			"diskMaxUsedSpaceRatio=99", "autoCreateTopicEnable=false", "traceOn=false", "slaveReadEnable=false",
			"flushDiskType=" + flush, s.java.conf,
		}, "\n")+"\n"), 0o600))
	if err == nil {
		b.names = &process{}
		err = b.names.run(s.java.java(ctx, b.dir, jars, "256m", "org.apache.rocketmq.namesrv.NamesrvStartup", nsConf), "boot success")
	}
	if err != nil {
		return nil, started, errors.Join(err, os.RemoveAll(b.dir))
	}
	started = time.Now()
	if err := b.run(s.java.java(ctx, b.dir, jars, s.java.heap, "org.apache.rocketmq.broker.BrokerStartup", conf), "boot success"); err != nil {
		b.names.end()
		return nil, started, errors.Join(err, os.RemoveAll(b.dir))
	}
	return b, started, nil
}

// freeRange is a port whose neighbours are free: a Java broker also listens on
// the one two below and the one above.
func freeRange() (int, error) {
	for range 100 {
		addrs, err := freePorts(1)
		if err != nil {
			return 0, err
		}
		_, text, _ := net.SplitHostPort(addrs[0])
		port, _ := strconv.Atoi(text)
		ok := true
		for p := port - 2; p <= port+1; p++ {
			l, err := net.Listen("tcp", ":"+strconv.Itoa(p))
			if err != nil {
				ok = false
				break
			}
			_ = l.Close()
		}
		if ok {
			return port, nil
		}
	}
	return 0, errors.New("no free range of ports")
}

// firstSend sends messages of its own making to a broker until the first one
// is acknowledged.
func (b *broker) firstSend() error {
	const updateAndCreateTopic, sendMessage = 17, 10
	deadline := time.Now().Add(60 * time.Second)
	for {
		_, _, err := call(b.addr, updateAndCreateTopic, map[string]string{
			"topic": "First", "defaultTopic": "TBW102", "readQueueNums": "1", "writeQueueNums": "1", "perm": "6",
			"topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "false",
		})
		if err == nil {
			_, _, err = callBody(b.addr, sendMessage, map[string]string{
				"producerGroup": "first", "topic": "First", "defaultTopic": "TBW102", "defaultTopicQueueNums": "1", "queueId": "0",
				"sysFlag": "0", "bornTimestamp": strconv.FormatInt(time.Now().UnixMilli(), 10), "flag": "0", "properties": "",
				"reconsumeTimes": "0", "unitMode": "false", "batch": "false",
			}, []byte("first"))
		}
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("no send was acknowledged in 60 s: %w", err)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// memory is a process's resident memory, and the part of it that is no mapped
// file, in MiB; 0 where there is no /proc.
func memory(pid int) (resident, anonymous float64) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, 0
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		kib, _ := strconv.ParseFloat(f[1], 64)
		switch f[0] {
		case "VmRSS:":
			resident = kib / 1024
		case "RssAnon:":
			anonymous = kib / 1024
		}
	}
	return resident, anonymous
}
