package consumer_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/consumer"
	"github.com/gorocketmq/rocketmq/selector"
	"github.com/gorocketmq/rocketmq/testbroker"
)

const (
	fileAt4 = `{"offsetTable":{{"brokerName":"b","queueId":0,"topic":"T"}:4}}`
	fileAt6 = `{"offsetTable":{{"brokerName":"b","queueId":0,"topic":"T"}:6}}`
)

// offsetsIn are the files of group G in a directory of offsets.
func offsetsIn(dir string) (main, bak, damaged string) {
	main = filepath.Join(dir, "G", "offsets.json")
	return main, main + ".bak", main + ".damaged"
}

func contents(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return ""
	}
	require.NoError(t, err)
	return string(b)
}

// TestC49_OffsetFileTrouble: whatever the files are, the member starts, and where it
// should. One error is logged if anything was lost. What is damaged never takes
// the place of what is good.
func TestC49_OffsetFileTrouble(t *testing.T) {
	const none = "-"
	random := "\x00\xff\x13{\"of"
	for name, tt := range map[string]struct {
		main, bak string
		from      int // the first message that comes; the start position is the third
		errors    int
		damaged   string
	}{
		"missing":                    {none, none, 2, 0, ""},
		"good":                       {fileAt6, fileAt4, 6, 0, ""},
		"empty, backup":              {"", fileAt4, 4, 1, ""},
		"cut, backup":                {fileAt6[:len(fileAt6)/2], fileAt4, 4, 1, fileAt6[:len(fileAt6)/2]},
		"random, backup":             {random, fileAt4, 4, 1, random},
		"missing, backup":            {none, fileAt4, 4, 1, ""},
		"of something else, backup":  {`{"hello":"world"}`, fileAt4, 4, 1, `{"hello":"world"}`},
		"negative, backup":           {`{"offsetTable":{{"brokerName":"b","queueId":0,"topic":"T"}:-4}}`, fileAt4, 4, 1, `{"offsetTable":{{"brokerName":"b","queueId":0,"topic":"T"}:-4}}`},
		"empty":                      {"", none, 2, 1, ""},
		"both cut":                   {fileAt6[:30], fileAt4[:40], 2, 1, fileAt6[:30]},
		"missing, backup is damaged": {none, random, 2, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			main, bak, damaged := offsetsIn(dir)
			require.NoError(t, os.MkdirAll(filepath.Dir(main), 0o755))
			require.NoError(t, os.WriteFile(main+".tmp", []byte("left by a crash"), 0o600))
			for path, text := range map[string]string{main: tt.main, bak: tt.bak} {
				if text != none {
					require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
				}
			}
			bubble(t, func(t *testing.T, b *fake) {
				b.topic("T", 1)
				want := map[string]int{}
				for i := range 10 {
					b.put("T", 0, fmt.Sprint(i))
					if i >= tt.from {
						want[fmt.Sprint(i)] = 1
					}
				}
				logs := &levels{}
				var got received
				c := start(t, newBroadcast(t, b.client(rocketmq.WithLogger(slog.New(logs))), consumer.WithOffsetStore(consumer.FileOffsets(dir)),
					consumer.StartFrom(rocketmq.AtOffset(2)), consumer.Subscribe("T", selector.All, got.handler())))
				synctest.Wait()
				require.Equal(t, want, got.bodies())
				require.Equal(t, tt.errors, logs.count(slog.LevelError))
				require.NoError(t, c.stop())
			})
			require.Equal(t, `{"offsetTable":{{"brokerName":"b","queueId":0,"topic":"T"}:10}}`+"\n", contents(t, main))
			require.Equal(t, tt.damaged, contents(t, damaged))
			if tt.errors == 1 && tt.from == 4 {
				require.Equal(t, fileAt4, contents(t, bak))
			}
			_, err := os.Stat(main + ".tmp")
			require.ErrorIs(t, err, os.ErrNotExist)
		})
	}
}

// Files that LocalFileOffsetStore of Java's clients has written. It reads ours, too.
func TestOffsetFilesOfJava(t *testing.T) {
	files := map[string]string{
		"4.9.7 and 5.3.3": "{\n\t\"offsetTable\":{{\n\t\t\t\"brokerName\":\"b\",\n\t\t\t\"queueId\":0,\n\t\t\t\"topic\":\"T\"\n\t\t}:6," +
			"{\n\t\t\t\"brokerName\":\"broker-a\",\n\t\t\t\"queueId\":1,\n\t\t\t\"topic\":\"T\"\n\t\t}:7\n\t}\n}",
		"5.5.0": "{\n\t\"offsetTable\":{\n\t\t{\n\t\t\t\"brokerName\":\"b\",\n\t\t\t\"queueId\":0,\n\t\t\t\"topic\":\"T\"\n\t\t}:6,\n" +
			"\t\t{\n\t\t\t\"brokerName\":\"broker-a\",\n\t\t\t\"queueId\":1,\n\t\t\t\"topic\":\"T\"\n\t\t}:7\n\t}\n}",
	}
	for name, text := range files {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			main, _, _ := offsetsIn(dir)
			require.NoError(t, os.MkdirAll(filepath.Dir(main), 0o755))
			require.NoError(t, os.WriteFile(main, []byte(text), 0o600))
			want := map[rocketmq.Queue]int64{queueOfT(0): 6, {Topic: "T", Broker: "broker-a", ID: 1}: 7}
			got, err := consumer.FileOffsets(dir).Load(context.Background(), "G", []rocketmq.Queue{queueOfT(0), {Topic: "T", Broker: "broker-a", ID: 1}})
			require.NoError(t, err)
			require.Equal(t, want, got)
		})
	}
}

// C49, a directory that cannot be written: messages are handled, and Run says at its
// end that their offsets were not saved.
func TestC49_OffsetFileThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	main, _, _ := offsetsIn(dir)
	require.NoError(t, os.MkdirAll(main+".tmp", 0o755)) // root could write to a directory that is read-only
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		var got received
		c := start(t, newBroadcast(t, b.client(), consumer.WithOffsetStore(consumer.FileOffsets(dir)), consumer.Subscribe("T", selector.All, got.handler())))
		for i := range 30 {
			b.put("T", 0, fmt.Sprint(i))
			time.Sleep(time.Second)
		}
		require.Len(t, got.bodies(), 30)
		require.ErrorContains(t, c.stop(), "offsets.json.tmp")
	})
}

// A file that is there and cannot be read is not the same as none.
func TestOffsetFileThatCannotBeRead(t *testing.T) {
	for _, which := range []string{"offsets.json", "offsets.json.bak"} {
		dir := t.TempDir()
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "G", which), 0o755))
		bubble(t, func(t *testing.T, b *fake) {
			b.topic("T", 1)
			store := consumer.FileOffsets(dir)
			c := newBroadcast(t, b.client(), consumer.WithOffsetStore(store), consumer.Subscribe("T", selector.All, consumer.HandlerFunc(nop)))
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			require.ErrorContains(t, c.Run(ctx), which)
			_, err := store.Load(context.Background(), "G", []rocketmq.Queue{queueOfT(0)})
			require.ErrorContains(t, err, which)
			require.ErrorContains(t, store.Save(context.Background(), "G", map[rocketmq.Queue]int64{queueOfT(0): 1}), which)
			require.Empty(t, b.beats, "it has not joined")
		})
	}
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		c := newBroadcast(t, b.client(), consumer.WithOffsetStore(consumer.FileOffsets("")), consumer.Subscribe("T", selector.All, consumer.HandlerFunc(nop)))
		require.ErrorIs(t, c.Run(context.Background()), rocketmq.ErrInvalidOption)
	})
}

// Two members of one group must not have one store: what one has done the other
// has not. When the first has ended the next may.
func TestOffsetStoreTakesOneMemberOfAGroup(t *testing.T) {
	for name, store := range map[string]consumer.OffsetStore{"memory": consumer.MemoryOffsets(), "file": consumer.FileOffsets(t.TempDir())} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, b *fake) {
				b.topic("T", 1)
				var got received
				member := func() *consumer.Push {
					return newBroadcast(t, b.client(), consumer.WithOffsetStore(store), consumer.Subscribe("T", selector.All, got.handler()))
				}
				first := start(t, member())
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				require.ErrorIs(t, member().Run(ctx), rocketmq.ErrInvalidOption)
				other, err := consumer.NewPush(b.client(), "other", consumer.WithModel(consumer.Broadcasting), consumer.WithOffsetStore(store),
					consumer.Subscribe("T", selector.All, consumer.HandlerFunc(nop)))
				require.NoError(t, err)
				another := start(t, other)
				b.put("T", 0, "1")
				synctest.Wait()
				require.NoError(t, first.stop())
				b.put("T", 0, "2")
				next := start(t, member())
				synctest.Wait()
				require.Equal(t, map[string]int{"1": 1, "2": 1}, got.bodies())
				require.NoError(t, next.stop())
				require.NoError(t, another.stop())
			})
		})
	}
}

// The next member reads the file anew: somebody may have changed it while there was
// none.
func TestOffsetFileChangedBetweenTwoRuns(t *testing.T) {
	dir := t.TempDir()
	main, _, _ := offsetsIn(dir)
	store := consumer.FileOffsets(dir)
	bubble(t, func(t *testing.T, b *fake) {
		b.topic("T", 1)
		var got received
		sub := consumer.Subscribe("T", selector.All, got.handler())
		c := start(t, newBroadcast(t, b.client(), consumer.WithOffsetStore(store), sub))
		for i := range 8 {
			b.put("T", 0, fmt.Sprint(i))
		}
		synctest.Wait()
		require.NoError(t, c.stop())
		require.NoError(t, os.WriteFile(main, []byte(fileAt6), 0o600))
		c = start(t, newBroadcast(t, b.client(), consumer.WithOffsetStore(store), sub))
		synctest.Wait()
		require.Equal(t, map[string]int{"0": 1, "1": 1, "2": 1, "3": 1, "4": 1, "5": 1, "6": 2, "7": 2}, got.bodies())
		require.NoError(t, c.stop())
	})
}

// Several groups at a time, and each offset where it belongs.
func TestOffsetStoresUnderConcurrency(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx := context.Background()
	for name, store := range map[string]consumer.OffsetStore{"memory": consumer.MemoryOffsets(), "file": consumer.FileOffsets(dir)} {
		t.Run(name, func(t *testing.T) {
			groups := []string{"G", "g2", "NS%G", "../G", "%RETRY%x|y"}
			queues := []rocketmq.Queue{queueOfT(0), queueOfT(1), {Topic: `%"`, Broker: "b\\", ID: 3}}
			var wg sync.WaitGroup
			for g, group := range groups {
				for i, q := range queues {
					wg.Go(func() {
						for n := range 8 {
							if err := store.Save(ctx, group, map[rocketmq.Queue]int64{q: int64(1000*g + 100*i + n)}); err != nil {
								t.Error(err)
							}
							if got, err := store.Load(ctx, group, queues[i:i+1]); err != nil || got[q] != int64(1000*g+100*i+n) {
								t.Errorf("%v %v", got, err)
							}
						}
					})
				}
			}
			wg.Wait()
			if name == "file" {
				store = consumer.FileOffsets(dir) // reads them anew
			}
			for g, group := range groups {
				got, err := store.Load(ctx, group, append(queues, queueOfT(9)))
				require.NoError(t, err)
				want := map[rocketmq.Queue]int64{}
				for i, q := range queues {
					want[q] = int64(1000*g + 100*i + 7)
				}
				require.Equal(t, want, got)
			}
		})
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	require.ElementsMatch(t, []string{"G", "g2", "NS%25G", "%2E%2E%2FG", "%25RETRY%25x%7Cy"}, names)
}

// The file, its backup and what they are after two saves and a damage between.
func TestOffsetFileDamagedWhileInUse(t *testing.T) {
	dir := t.TempDir()
	main, bak, _ := offsetsIn(dir)
	store, ctx := consumer.FileOffsets(dir), context.Background()
	for i := range int64(3) {
		require.NoError(t, store.Save(ctx, "G", map[rocketmq.Queue]int64{queueOfT(0): 4 + i}))
	}
	require.Contains(t, contents(t, main), ":6}")
	require.Contains(t, contents(t, bak), ":5}")
	require.NoError(t, os.WriteFile(main, []byte("{"), 0o600))
	again := consumer.FileOffsets(dir)
	got, err := again.Load(ctx, "G", []rocketmq.Queue{queueOfT(0)})
	require.ErrorIs(t, err, consumer.ErrOffsetsDamaged)
	require.ErrorContains(t, err, main)
	require.Equal(t, map[rocketmq.Queue]int64{queueOfT(0): 5}, got)
	got, err = again.Load(ctx, "G", []rocketmq.Queue{queueOfT(0)})
	require.NoError(t, err, "it is told once")
	require.Equal(t, map[rocketmq.Queue]int64{queueOfT(0): 5}, got)
	require.NoError(t, again.Save(ctx, "G", map[rocketmq.Queue]int64{queueOfT(0): 2}), "a reset")
	require.Contains(t, contents(t, main), ":2}")
	require.Contains(t, contents(t, bak), ":5}")
}

// On our own brokers: both members get all, and a restarted one goes on where it
// stopped, with what came meanwhile.
func TestClusterBroadcast(t *testing.T) {
	t.Parallel()
	b := testbroker.New(t, testbroker.Brokers(2), testbroker.Topic("T", 4))
	dirs := []string{t.TempDir(), t.TempDir()}
	run := func(i, n int) (*running, *counter) {
		got := newCounter(n)
		return start(t, newBroadcast(t, b.Client(t), consumer.WithOffsetStore(consumer.FileOffsets(dirs[i])), consumer.Subscribe("T", selector.All, got.handler()))), got
	}
	first, got1 := run(0, 300)
	second, got2 := run(1, 500)
	cl := b.Client(t)
	sendMany(t, cl, "T", 0, 300)
	got1.wait(t)
	require.NoError(t, first.stop())
	sendMany(t, cl, "T", 300, 500)
	got2.wait(t)
	first, got3 := run(0, 200)
	got3.wait(t)
	require.NoError(t, first.stop())
	require.NoError(t, second.stop())
	for i := range 500 {
		body := fmt.Sprint(i)
		require.Equal(t, 1, got1.bodies()[body]+got3.bodies()[body], "first, message %s", body)
		require.Equal(t, 1, got2.bodies()[body], "second, message %s", body)
	}
	for _, broker := range b.Brokers() {
		_, ok := b.Offset("G", rocketmq.Queue{Topic: "T", Broker: broker, ID: 0})
		require.False(t, ok, "no broker has an offset")
	}
}
