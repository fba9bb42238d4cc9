package store_test

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// manifest says what a broker left in its store.
type manifest struct {
	Sent []struct {
		Kind        string
		Topic       string
		Queue       int32
		QueueOffset int64  `json:"queue_offset"`
		Tags        string `json:"tags"`
		Keys        string
		MsgID       string            `json:"msg_id"`
		OffsetMsgID string            `json:"offset_msg_id"`
		BodyLength  int               `json:"body_length"`
		BodySHA1    string            `json:"body_sha1"`
		Properties  map[string]string `json:"properties"`
		Count       int
	}
	Queues map[string]struct {
		Min, Max          int64
		EarliestStoreTime int64 `json:"earliest_store_time"`
	}
	Lookups []struct {
		Topic, Key string
		Found      []struct {
			Topic          string
			Queue          int32
			QueueOffset    int64  `json:"queue_offset"`
			PhysicalOffset int64  `json:"physical_offset"`
			UniqueKey      string `json:"unique_key"`
		}
	}
}

func readManifest(t *testing.T, name string) (m manifest) {
	t.Helper()
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &m))
	return m
}

func goldenRig(t *testing.T, disk bool, archive string) *rig {
	r := newRig(t, disk, func(c *store.Config) {
		c.CommitLogFileSize, c.ConsumeQueueFileSize = 65536, 2000
		c.IndexSlots, c.IndexEntries = 50, 100
		untar(t, c.FS, c.Dir, archive)
	})
	return r
}

// TestApacheStores opens what real brokers left, after a clean stop and after
// SIGKILL, and finds every message where the broker said it is; so it does
// after a restart of ours, and after a kill.
func TestApacheStores(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"4.9", "5.3"} {
		for _, phase := range []string{"clean", "killed"} {
			for _, disk := range []bool{false, true} {
				t.Run("version="+version+"/phase="+phase+"/disk="+strconv.FormatBool(disk), func(t *testing.T) {
					prefix := "testdata/store-" + version
					m := readManifest(t, prefix+"-"+phase+".json")
					earlier := readManifest(t, prefix+"-clean.json")
					r := goldenRig(t, disk, prefix+"-"+phase+".tar.gz")
					check := func() {
						t.Helper()
						r.checkManifest(m)
						r.checkSent(earlier)
					}
					check()
					r.reopen()
					check()
					r.kill()
					check()

					// And it goes on where the broker stopped.
					last := m.Queues["TopicA/0"].Max
					res := r.put("TopicA", 0, "ours")
					require.Equal(t, last, res.QueueOffset)
					r.settle()
					require.Equal(t, []string{"ours"}, r.bodies("TopicA", 0, last))
					r.kill()
					require.Equal(t, []string{"ours"}, r.bodies("TopicA", 0, last))
					r.reopen()
					require.Equal(t, []string{"ours"}, r.bodies("TopicA", 0, last))
				})
			}
		}
	}
}

func (r *rig) checkManifest(m manifest) {
	r.t.Helper()
	require.NotEmpty(r.t, m.Queues)
	for name, want := range m.Queues {
		topic, id := splitQueue(r.t, name)
		assert.Equal(r.t, want.Min, r.MinOffset(topic, id), "min of %s", name)
		assert.Equal(r.t, want.Max, r.MaxOffset(topic, id), "max of %s", name)
		assert.Equal(r.t, want.EarliestStoreTime, r.EarliestStoreTime(topic, id), "earliest of %s", name)
		assert.Len(r.t, r.records(topic, id, want.Min), int(want.Max-want.Min), "records of %s", name)
	}
	require.NotEmpty(r.t, m.Sent)
	r.checkSent(m)
	r.checkLookups(m)
}

// checkLookups asks by key what the broker was asked, and by unique id what it
// answered.
func (r *rig) checkLookups(m manifest) {
	r.t.Helper()
	r.index()
	require.NotEmpty(r.t, m.Lookups)
	for _, l := range m.Lookups {
		got := r.query(store.QueryRequest{Topic: []byte(l.Topic), Key: []byte(l.Key), End: math.MaxInt64, Max: 64})
		require.Len(r.t, got, len(l.Found), "%s of %s", l.Key, l.Topic)
		for i, want := range l.Found {
			assert.Equal(r.t, want.Topic, string(got[i].Topic))
			assert.Equal(r.t, want.Queue, got[i].QueueID)
			assert.Equal(r.t, want.QueueOffset, got[i].QueueOffset)
			assert.Equal(r.t, want.PhysicalOffset, got[i].PhyOffset)
			assert.Equal(r.t, want.UniqueKey, got[i].Properties.Text(wire.PropUniqKey))
			one := r.query(store.QueryRequest{Topic: []byte(l.Topic), Key: []byte(want.UniqueKey), Unique: true, End: math.MaxInt64, Max: 64})
			require.NotEmpty(r.t, one, want.UniqueKey)
			assert.Contains(r.t, one, got[i])
		}
	}
}

// TestApacheIndexIsRebuilt removes Apache's index and builds it from the log:
// it is the same, byte for byte.
func TestApacheIndexIsRebuilt(t *testing.T) {
	for _, version := range []string{"4.9", "5.3"} {
		for _, phase := range []string{"clean", "killed"} {
			t.Run(version+" "+phase, func(t *testing.T) {
				archive := "testdata/store-" + version + "-" + phase + ".tar.gz"
				apache := mfile.NewMemory()
				untar(t, apache, "store", archive)
				want, err := apache.ReadDir("store/index")
				require.NoError(t, err)

				r := goldenRig(t, false, archive)
				require.NoError(t, r.Close())
				require.NoError(t, r.cfg.FS.RemoveAll(filepath.Join(r.cfg.Dir, "index")))
				r.open()
				r.index()
				require.NoError(t, r.Close())
				got, err := r.cfg.FS.ReadDir(filepath.Join(r.cfg.Dir, "index"))
				require.NoError(t, err)
				require.Len(t, got, len(want))
				for i := range want {
					a, err := apache.ReadFile(filepath.Join("store", "index", want[i].Name))
					require.NoError(t, err)
					b, err := r.cfg.FS.ReadFile(filepath.Join(r.cfg.Dir, "index", got[i].Name))
					require.NoError(t, err)
					require.Equal(t, hex.EncodeToString(a), hex.EncodeToString(b), "file %d", i)
				}
				r.open()
			})
		}
	}
}

// checkSent looks every sent message up by its offset id and, where it still
// has its own topic, through its queue.
func (r *rig) checkSent(m manifest) {
	r.t.Helper()
	for _, s := range m.Sent {
		if s.OffsetMsgID == "" {
			continue // half messages: the client is not told where they are
		}
		ids, uniq := strings.Split(s.OffsetMsgID, ","), strings.Split(s.MsgID, ",")
		for i, id := range ids {
			_, phy, err := wire.ParseOffsetMsgID(id)
			require.NoError(r.t, err)
			b, ok := r.ViewMessage(nil, phy)
			require.True(r.t, ok, "%s at %d", s.Kind, phy)
			var rec wire.Record
			_, err = wire.DecodeRecord(b, &rec)
			require.NoError(r.t, err)
			body := plainBody(r.t, &rec)
			if s.Count == 0 {
				sum := sha1.Sum(body)
				assert.Equal(r.t, s.BodySHA1, hex.EncodeToString(sum[:]))
				assert.Len(r.t, body, s.BodyLength)
				assert.Equal(r.t, uniq[i], rec.Properties.Text(wire.PropUniqKey))
				assert.Equal(r.t, s.Keys, rec.Properties.Text(wire.PropKeys))
				assert.Equal(r.t, s.Tags, rec.Properties.Text(wire.PropTags))
			} else {
				assert.Equal(r.t, "batch "+strconv.Itoa(i), string(body))
			}
			for k, v := range s.Properties {
				if !strings.HasPrefix(k, "!") {
					assert.Equal(r.t, v, rec.Properties.Text(k))
				}
			}
			if strings.HasPrefix(s.Kind, "delay") || strings.HasPrefix(s.Kind, "timer") {
				continue // stored under another topic
			}
			off := s.QueueOffset + int64(i)
			got, res := r.Get(nil, store.GetRequest{Topic: []byte(s.Topic), QueueID: s.Queue, Offset: off, MaxMsgs: 1})
			require.Equal(r.t, store.Found, res.Status)
			assert.Equal(r.t, b, got)
			assert.Equal(r.t, rec.StoreTime, r.StoreTimeAt(s.Topic, s.Queue, off))
		}
	}
}

func splitQueue(t testing.TB, name string) (string, int32) {
	t.Helper()
	i := strings.LastIndexByte(name, '/')
	id, err := strconv.Atoi(name[i+1:])
	require.NoError(t, err)
	return name[:i], int32(id)
}

func plainBody(t testing.TB, r *wire.Record) []byte {
	t.Helper()
	if r.SysFlag&wire.SysCompressed == 0 {
		return r.Body
	}
	z, err := zlib.NewReader(bytes.NewReader(r.Body))
	require.NoError(t, err)
	b, err := io.ReadAll(z)
	require.NoError(t, err)
	return b
}
