//go:build interop

package interop

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	clusterName = "InteropCluster"
	brokerName  = "interop-a"
	queues      = 8 // of each topic the suite makes
)

// A cluster is one name server and one broker, Apache's or ours.
type cluster struct {
	name            string // as pairing lines show it
	namesrv, broker string // host:port
	alias           string // the broker's name if it is not brokerName
	apache          bool
	broking         *server
}

// called is the broker's name.
func (c *cluster) called() string { return cmp.Or(c.alias, brokerName) }

// startApache starts Apache's name server and broker of one version.
func startApache(t *testing.T, version string) *cluster {
	t.Helper()
	dir := javaHome(t, "apache-"+version)
	ns, br := freePort(t), freePort(t)
	c := &cluster{
		name:    "apache " + version,
		apache:  true,
		namesrv: fmt.Sprintf("127.0.0.1:%d", ns),
		broker:  fmt.Sprintf("127.0.0.1:%d", br),
	}

	startNamesrv(t, version, dir, ns)
	c.broking = startApacheBroker(t, version, dir, c, filepath.Join(dir, "store"),
		append([]string{"mappedFileSizeCommitLog=67108864"}, soonChecked...)...)
	return c
}

// startNamesrv starts Apache's name server of one version.
func startNamesrv(t *testing.T, version, dir string, port int) *server {
	t.Helper()
	conf := filepath.Join(dir, "namesrv.conf")
	writeFile(t, conf, fmt.Sprintf("listenPort=%d\nbindAddress=127.0.0.1\n", port))
	s, _ := startServer(t, "namesrv-"+version, "boot success", javaCommand(dir, fetchJars(t, version), serverFlags("256m"),
		"org.apache.rocketmq.namesrv.NamesrvStartup", "-c", conf))
	return s
}

// startApacheBroker starts Apache's broker of one version at c.broker on a
// store, with more lines of configuration, and waits until the name server
// lists it.
func startApacheBroker(t *testing.T, version, dir string, c *cluster, store string, more ...string) *server {
	t.Helper()
	_, text, _ := net.SplitHostPort(c.broker)
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(dir, "broker.conf")
	writeFile(t, conf, strings.Join(append([]string{
		"brokerClusterName=" + clusterName,
		"brokerName=" + c.called(),
		"brokerId=0",
		"brokerRole=ASYNC_MASTER",
		"brokerIP1=127.0.0.1",
		"brokerIP2=127.0.0.1",
		"bindAddress=127.0.0.1",
		fmt.Sprintf("listenPort=%d", port),
		fmt.Sprintf("haListenPort=%d", port+1),
		"namesrvAddr=" + c.namesrv,
		"storePathRootDir=" + store,
		"storePathCommitLog=" + filepath.Join(store, "commitlog"),
		"diskMaxUsedSpaceRatio=99",
		"flushDiskType=ASYNC_FLUSH",
		"autoCreateTopicEnable=true",
		"autoCreateSubscriptionGroup=true",
		"traceTopicEnable=true",
		"enablePropertyFilter=true",
		"recallMessageEnable=true",       // those before 5.3.2 ignore it
		"waitTimeMillsInSendQueue=10000", // not 200: busy machines are no reason to refuse messages
	}, more...), "\n")+"\n")
	s, _ := startServer(t, "broker-"+version, "boot success", javaCommand(dir, fetchJars(t, version), serverFlags("512m"),
		"org.apache.rocketmq.broker.BrokerStartup", "-c", conf))
	c.waitBroker(t)
	return s
}

// startOurs builds cmd/rmqbroker and starts it.
func startOurs(t *testing.T) *cluster {
	t.Helper()
	bin := goBuild(t, "..", "./cmd/rmqbroker")
	dir := newDir(t, "rmqbroker")
	conf := filepath.Join(dir, "broker.conf")
	writeFile(t, conf, strings.Join(append([]string{
		"brokerClusterName=" + clusterName,
		"brokerName=" + brokerName,
		"brokerId=0",
		"autoCreateTopicEnable=true",
		"autoCreateSubscriptionGroup=true",
		"traceTopicEnable=true",
		"recallMessageEnable=true",
	}, soonChecked[:2]...), "\n")+"\n")
	c := &cluster{
		name:    "rmqbroker",
		namesrv: fmt.Sprintf("127.0.0.1:%d", freePort(t)),
		broker:  fmt.Sprintf("127.0.0.1:%d", freePort(t)),
	}
	store := filepath.Join(dir, "store")
	var line string
	c.broking, line = startServer(t, "rmqbroker", "rmqbroker ready", exec.Command(bin,
		"-namesrv-listen", c.namesrv, "-listen", c.broker, "-store", store, "-c", conf))
	for _, want := range []string{"namesrv=" + c.namesrv, "broker=" + c.broker, "store=" + store} {
		if !strings.Contains(line, want) {
			t.Errorf("ready line %q does not say %q", line, want)
		}
	}
	c.waitBroker(t)
	return c
}

// waitBroker waits until the name server lists the broker. Apache's brokers
// say that they are up before they have registered, 5.3 by up to 15 s.
func (c *cluster) waitBroker(t *testing.T) {
	t.Helper()
	const getBrokerClusterInfo = 106
	c.waitNamesrv(t, getBrokerClusterInfo, nil, func(code int, body string) bool {
		return code == 0 && strings.Contains(body, c.called()) && strings.Contains(body, c.broker)
	})
}

// makeTopic makes a topic by asking the broker, without mqadmin.
func (c *cluster) makeTopic(t *testing.T, topic string) {
	t.Helper()
	const updateAndCreateTopic = 17
	n := strconv.Itoa(queues)
	if code, text, err := call(c.broker, updateAndCreateTopic, map[string]string{
		"topic": topic, "defaultTopic": "TBW102", "readQueueNums": n, "writeQueueNums": n, "perm": "6",
		"topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "false",
	}); err != nil || code != 0 {
		t.Fatalf("create topic %s: code %d, %v, %s", topic, code, err, text)
	}
	c.waitTopic(t, topic)
}

// waitTopic waits until the name server has the route of a topic.
func (c *cluster) waitTopic(t *testing.T, topic string) {
	t.Helper()
	const getRouteInfoByTopic = 105
	c.waitNamesrv(t, getRouteInfoByTopic, map[string]string{"topic": topic}, func(code int, body string) bool {
		return code == 0 && strings.Contains(body, fmt.Sprintf(`"readQueueNums":%d`, queues))
	})
}

// waitRoute waits until the name server has the route of a topic that the
// broker makes by itself.
func (c *cluster) waitRoute(t *testing.T, topic string) {
	t.Helper()
	const getRouteInfoByTopic = 105
	c.waitNamesrv(t, getRouteInfoByTopic, map[string]string{"topic": topic}, func(code int, body string) bool {
		return code == 0 && strings.Contains(body, c.called())
	})
}

func (c *cluster) waitNamesrv(t *testing.T, code int, fields map[string]string, ok func(code int, body string) bool) {
	t.Helper()
	var got int
	var body string
	var err error
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if got, body, err = call(c.namesrv, code, fields); err == nil && ok(got, body) {
			return
		}
	}
	t.Fatalf("%s: name server request %d %v: last answer code %d, %v, %s", c.name, code, fields, got, err, body)
}

// call makes one request with a JSON header. It knows nothing of the module's
// own codec, which is what is under test.
func call(addr string, code int, fields map[string]string) (int, string, error) {
	conn, err := net.DialTimeout("tcp", addr, 30*time.Second)
	if err != nil {
		return 0, "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
	header, err := json.Marshal(map[string]any{
		"code": code, "language": "JAVA", "version": 401, "opaque": 1, "flag": 0,
		"serializeTypeCurrentRPC": "JSON", "extFields": fields,
	})
	if err != nil {
		return 0, "", err
	}
	frame := binary.BigEndian.AppendUint32(nil, uint32(4+len(header)))
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(header)))
	if _, err := conn.Write(append(frame, header...)); err != nil {
		return 0, "", err
	}
	var size [8]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return 0, "", err
	}
	total, head := int(binary.BigEndian.Uint32(size[:])), int(binary.BigEndian.Uint32(size[4:])&0xFFFFFF)
	if total > 16<<20 || head > total-4 {
		return 0, "", fmt.Errorf("answer with impossible lengths %d, %d", total, head)
	}
	rest := make([]byte, total-4)
	if _, err := io.ReadFull(conn, rest); err != nil {
		return 0, "", err
	}
	var answer struct{ Code int }
	if err := json.Unmarshal(rest[:head], &answer); err != nil {
		return 0, "", err
	}
	return answer.Code, string(rest[head:]), nil
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
