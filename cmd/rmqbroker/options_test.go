package main

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/broker"
)

// confFile writes a broker.conf.
func confFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "broker.conf")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func mustParse(t *testing.T, args ...string) *options {
	t.Helper()
	o, err := parse(args, io.Discard)
	require.NoError(t, err)
	return o
}

func TestDefaults(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", filepath.Join(t.TempDir(), "state"))
	o := mustParse(t)
	require.Equal(t, "127.0.0.1:9876", o.namesrvListen)
	require.Equal(t, "127.0.0.1:10911", o.broker.Listen)
	require.Equal(t, filepath.Join(os.Getenv("XDG_STATE_HOME"), "rmqbroker"), o.broker.Store.Dir)
	require.True(t, o.broker.AutoCreateTopic)
	require.True(t, o.broker.AutoCreateGroup)
	require.Empty(t, o.broker.NameServers)
	require.False(t, o.verbose)
}

func TestHelp(t *testing.T) {
	var out bytes.Buffer
	_, err := parse([]string{"-h"}, &out)
	require.ErrorIs(t, err, flag.ErrHelp)
	for _, want := range []string{"-namesrv-listen", "-n ADDRS", "-listen", "-store", "-c FILE", "127.0.0.1:9876", "127.0.0.1:10911"} {
		require.Contains(t, out.String(), want)
	}
	for _, key := range broker.Keys() {
		require.Contains(t, out.String(), " "+key)
	}
	for line := range bytes.Lines(out.Bytes()) {
		require.LessOrEqual(t, len(line), 90, "%s", line)
	}
}

func TestFlagsOverrideTheFile(t *testing.T) {
	conf := confFile(t, "listenPort=20911\nbrokerIP1=10.0.0.1\nstorePathRootDir=/from/file\nnamesrvAddr=file:9876\nbrokerName=x\n")
	o := mustParse(t, "-c", conf)
	require.Equal(t, "0.0.0.0:20911", o.broker.Listen, "an address for others needs a listener for others")
	require.Equal(t, "10.0.0.1:20911", o.broker.AdvertiseAddr)
	require.Equal(t, "/from/file", o.broker.Store.Dir)
	require.Equal(t, []string{"file:9876"}, o.broker.NameServers)
	require.Empty(t, o.namesrvListen, "name servers elsewhere: none of our own")
	require.Equal(t, "x", o.broker.Name)

	o = mustParse(t, "-c", conf, "-listen", "127.0.0.1:0", "-store", "here", "-n", "a:1;b:2", "-namesrv-listen", "127.0.0.1:0")
	require.Equal(t, "127.0.0.1:0", o.broker.Listen)
	require.Empty(t, o.broker.AdvertiseAddr)
	require.Equal(t, "here", o.broker.Store.Dir)
	require.Equal(t, []string{"a:1", "b:2"}, o.broker.NameServers)
	require.Equal(t, "127.0.0.1:0", o.namesrvListen)
}

func TestConfKeys(t *testing.T) {
	o := mustParse(t, "-c", confFile(t, `
# a comment
brokerClusterName = C1
brokerId=0
bindAddress=127.0.0.1
mappedFileSizeCommitLog=65536
mappedFileSizeConsumeQueue=2000
autoCreateTopicEnable=false
autoCreateSubscriptionGroup=FALSE
defaultTopicQueueNums=4
brokerPermission=4
maxMessageSize=1024
flushDiskType=async_flush
flushIntervalCommitLog=250
syncFlushTimeout=1500
brokerRole=ASYNC_MASTER
warmMapedFileEnable=true
`))
	b := o.broker
	require.Equal(t, "C1", b.Cluster)
	require.EqualValues(t, 65536, b.Store.CommitLogFileSize)
	require.EqualValues(t, 2000, b.Store.ConsumeQueueFileSize)
	require.False(t, b.AutoCreateTopic)
	require.False(t, b.AutoCreateGroup)
	require.EqualValues(t, 4, b.DefaultTopicQueues)
	require.EqualValues(t, 4, b.Permission)
	require.Equal(t, 1024, b.Store.MaxMessageSize)
	require.False(t, b.Store.SyncFlush)
	require.Equal(t, 1500*time.Millisecond, b.Store.SyncFlushTimeout)
	require.True(t, mustParse(t, "-c", confFile(t, "flushDiskType=SYNC_FLUSH\n")).broker.Store.SyncFlush)
	require.Len(t, o.warnings, 1)
	require.Contains(t, o.warnings[0], "line 17: warmMapedFileEnable has no effect")
}

func TestCommitLogFolder(t *testing.T) {
	// The key may come before the root that it must agree with.
	mustParse(t, "-c", confFile(t, "storePathCommitLog=/d/commitlog\nstorePathRootDir=/d\n"))
	_, err := parse([]string{"-c", confFile(t, "storePathRootDir=/d\nstorePathCommitLog=/elsewhere\n")}, io.Discard)
	require.ErrorIs(t, err, errUsage)
	require.ErrorContains(t, err, "line 2: storePathCommitLog=/elsewhere")
}

func TestBadUsage(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"unknown flag":        {[]string{"-x"}, "-x"},
		"argument":            {[]string{"start"}, `"start"`},
		"no name server":      {[]string{"-namesrv-listen", "none"}, "no name server"},
		"address":             {[]string{"-listen", "10911"}, `-listen "10911": host:port is needed`},
		"name server address": {[]string{"-n", "a:1;b"}, `name server "b"`},
		"no file":             {[]string{"-c", "absent.conf"}, "absent.conf"},
		"bad number":          {[]string{"-c", confFile(t, "# x\nbrokerId=zero\n")}, "line 2: brokerId=zero"},
		"bad port":            {[]string{"-c", confFile(t, "listenPort=99999\n")}, "line 1: listenPort=99999"},
		"bad boolean":         {[]string{"-c", confFile(t, "autoCreateTopicEnable=yes\n")}, "line 1: autoCreateTopicEnable=yes"},
		"bad escape":          {[]string{"-c", confFile(t, "a=1\nb=\\u12\n")}, "line 2"},
		"flush type":          {[]string{"-c", confFile(t, "flushDiskType=SYNC\n")}, "line 1: flushDiskType=SYNC: SYNC_FLUSH or ASYNC_FLUSH"},
		"slave":               {[]string{"-c", confFile(t, "brokerRole=SLAVE\n")}, "brokerRole=SLAVE: only ASYNC_MASTER"},
		"dledger":             {[]string{"-c", confFile(t, "enableDLegerCommitLog=true\n")}, "DLedger is not implemented"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse(tc.args, io.Discard)
			require.ErrorIs(t, err, errUsage)
			require.ErrorContains(t, err, tc.want)
		})
	}
}
