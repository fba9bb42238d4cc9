//go:build interop

package interop

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
)

// mqadmin runs one command of Apache's administration tool. The tool exits
// with 0 whatever happens, so a stack trace in its output is the failure.
func mqadmin(t *testing.T, version string, args ...string) string {
	t.Helper()
	return mqadminIn(t, javaHome(t, "mqadmin-"+version), version, args...)
}

// mqadminIn is the same with dir as the working directory.
func mqadminIn(t *testing.T, dir, version string, args ...string) string {
	t.Helper()
	out, err := output(t, patience, javaCommand(dir, fetchJars(t, version), toolFlags,
		"org.apache.rocketmq.tools.command.MQAdminStartup", args...))
	out = quiet(out)
	if err != nil || strings.Contains(out, "Exception") {
		t.Fatalf("mqadmin %s %s: %v\n%s", version, strings.Join(args, " "), err, out)
	}
	return out
}

// createTopic makes a topic with mqadmin updateTopic and waits for its route.
func createTopic(t *testing.T, version string, c *cluster, topic string) {
	t.Helper()
	out := mqadmin(t, version, "updateTopic", "-n", c.namesrv, "-b", c.broker, "-t", topic,
		"-r", fmt.Sprint(queues), "-w", fmt.Sprint(queues))
	contains(t, "updateTopic", out, fmt.Sprintf("create topic to %s success.", c.broker))
	contains(t, "updateTopic", out, fmt.Sprintf("topicName=%s, readQueueNums=%d, writeQueueNums=%d, perm=RW-", topic, queues, queues))
	c.waitTopic(t, topic)
}

// inspect checks what mqadmin shows about a topic that holds stored messages,
// all of which a group has consumed. It returns the number of commands run.
func inspect(t *testing.T, version string, c *cluster, topic, group string, stored int) int {
	t.Helper()

	out := mqadmin(t, version, "clusterList", "-n", c.namesrv)
	if rows := table(out, clusterName, brokerName); len(rows) != 1 || len(rows[0]) < 5 ||
		rows[0][2] != "0" || rows[0][3] != c.broker || !strings.HasPrefix(rows[0][4], "V") {
		t.Errorf("clusterList does not show master %s at %s with a version:\n%s", brokerName, c.broker, out)
	}

	out = mqadmin(t, version, "topicList", "-n", c.namesrv)
	for _, name := range []string{topic, "%RETRY%" + group, "TBW102"} {
		if len(table(out, name)) != 1 {
			t.Errorf("topicList does not show %s exactly once:\n%s", name, out)
		}
	}

	out = mqadmin(t, version, "topicRoute", "-n", c.namesrv, "-t", topic)
	contains(t, "topicRoute", out, fmt.Sprintf(`"brokerName":"%s"`, brokerName))
	contains(t, "topicRoute", out, fmt.Sprintf(`"cluster":"%s"`, clusterName))
	contains(t, "topicRoute", out, fmt.Sprintf(`"readQueueNums":%d`, queues))
	contains(t, "topicRoute", out, fmt.Sprintf(`"writeQueueNums":%d`, queues))
	contains(t, "topicRoute", out, `"perm":6`)
	if !regexp.MustCompile(`"brokerAddrs":\{\s*"?0"?:"` + regexp.QuoteMeta(c.broker) + `"\s*\}`).MatchString(out) {
		t.Errorf("topicRoute does not show broker 0 at %s:\n%s", c.broker, out)
	}

	out = mqadmin(t, version, "topicStatus", "-n", c.namesrv, "-t", topic)
	rows := table(out, brokerName)
	total := 0
	for i, r := range rows {
		if len(r) < 6 || r[1] != fmt.Sprint(i) || r[2] != "0" || r[4] != time.Now().Format(time.DateOnly) && r[4] != time.Now().Add(-time.Hour).Format(time.DateOnly) {
			t.Errorf("topicStatus: row %d is %v, want queue %d, minimum 0, stored today", i, r, i)
			continue
		}
		total += number(t, r[3])
	}
	if len(rows) != queues || total != stored {
		t.Errorf("topicStatus shows %d queues with %d messages, want %d with %d:\n%s", len(rows), total, queues, stored, out)
	}

	out = mqadmin(t, version, "consumerProgress", "-n", c.namesrv, "-g", group)
	rows = table(out, topic, brokerName)
	total = 0
	for _, r := range rows {
		if len(r) < 6 || r[3] != r[4] || r[5] != "0" {
			t.Errorf("consumerProgress -g: row %v, want equal offsets and difference 0", r)
			continue
		}
		total += number(t, r[4])
	}
	if len(rows) != queues || total != stored || !strings.Contains(out, "Diff Total: 0\n") {
		t.Errorf("consumerProgress -g shows %d queues with %d consumed, want %d with %d, and a total difference of 0:\n%s",
			len(rows), total, queues, stored, out)
	}

	out = mqadmin(t, version, "consumerProgress", "-n", c.namesrv)
	if rows := table(out, group); len(rows) != 1 || rows[0][len(rows[0])-1] != "0" {
		t.Errorf("consumerProgress does not list %s with difference 0:\n%s", group, out)
	}
	return 6
}

// table returns the rows, split at white space, that start with these cells.
func table(out string, cells ...string) (rows [][]string) {
	for line := range strings.Lines(out) {
		row := strings.Fields(line)
		if len(row) < len(cells) {
			continue
		}
		same := true
		for i, c := range cells {
			same = same && row[i] == c
		}
		if same {
			rows = append(rows, row)
		}
	}
	return rows
}

func contains(t *testing.T, what, out, part string) {
	t.Helper()
	if !strings.Contains(out, part) {
		t.Errorf("%s does not say %q:\n%s", what, part, out)
	}
}

func number(t *testing.T, s string) (n int) {
	t.Helper()
	if _, err := fmt.Sscan(s, &n); err != nil {
		t.Errorf("%q is not a number", s)
	}
	return n
}
