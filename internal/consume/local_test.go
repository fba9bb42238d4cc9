package consume

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq"
)

// tableStore is an offset store that remembers what it was given.
type tableStore struct {
	table map[rocketmq.Queue]int64
	saved []map[rocketmq.Queue]int64
	err   error
}

func (s *tableStore) Load(context.Context, string, []rocketmq.Queue) (map[rocketmq.Queue]int64, error) {
	return s.table, s.err
}

func (s *tableStore) Save(_ context.Context, _ string, offsets map[rocketmq.Queue]int64) error {
	s.saved = append(s.saved, maps.Clone(offsets))
	return s.err
}

func newLocalTest(store OffsetStore) (*Consumer, *queue) {
	q := newTestQueue()
	q.c.log = slog.New(slog.DiscardHandler)
	q.c.local = newLocal(store, "G")
	return q.c, q
}

// Only what has moved is saved, and what could not be saved the next time. A queue
// whose offset was moved has nothing to say any more: the one in its place has.
func TestSaveOffsets(t *testing.T) {
	store, ctx := &tableStore{}, context.Background()
	c, q := newLocalTest(store)
	ps := cache(t, q, 3, 1)
	finishAll(q, ps[0])
	require.NoError(t, c.save(ctx, []*queue{q}))
	require.NoError(t, c.save(ctx, []*queue{q}))
	require.Equal(t, []map[rocketmq.Queue]int64{{q.key: 1}}, store.saved)

	finishAll(q, ps[1])
	store.err = errors.New("down")
	require.ErrorIs(t, c.save(ctx, []*queue{q}), store.err)
	store.err = nil
	require.NoError(t, c.save(ctx, []*queue{q}))
	require.Equal(t, []map[rocketmq.Queue]int64{{q.key: 1}, {q.key: 2}, {q.key: 2}}, store.saved)

	fresh := newTestQueue()
	fresh.c = c
	q.stale.Store(true)
	finishAll(q, ps[2])
	require.NoError(t, c.save(ctx, []*queue{fresh, q}))
	require.Equal(t, map[rocketmq.Queue]int64{q.key: 0}, store.saved[3], "a reset goes back, and stays")
}

// One saves at a time; who waits gives up with its context.
func TestSaveWaitsForItsTurn(t *testing.T) {
	c, q := newLocalTest(&tableStore{})
	require.NoError(t, c.local.take(context.Background()))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, c.save(ctx, []*queue{q}), context.Canceled)
	_, err := c.load(ctx, []rocketmq.Queue{q.key})
	require.ErrorIs(t, err, context.Canceled)
	c.local.leave()
	require.NoError(t, c.save(context.Background(), []*queue{q}))
}

// What a store says is taken for these queues only, and if it makes sense. One that
// has lost a queue is told its offset anew.
func TestLoadOffsets(t *testing.T) {
	other := rocketmq.Queue{Topic: "other", Broker: "b"}
	ctx := context.Background()
	store := &tableStore{}
	c, q := newLocalTest(store)
	ask := []rocketmq.Queue{q.key}
	for name, tt := range map[string]struct {
		table map[rocketmq.Queue]int64
		err   error
		want  map[rocketmq.Queue]int64
	}{
		"known":    {map[rocketmq.Queue]int64{q.key: 5, other: 7}, nil, map[rocketmq.Queue]int64{q.key: 5}},
		"none":     {nil, nil, map[rocketmq.Queue]int64{}},
		"negative": {map[rocketmq.Queue]int64{q.key: -1}, nil, map[rocketmq.Queue]int64{}},
		"damaged":  {map[rocketmq.Queue]int64{q.key: 5}, ErrOffsetsDamaged, map[rocketmq.Queue]int64{q.key: 5}},
		"failed":   {map[rocketmq.Queue]int64{q.key: 5}, errors.New("down"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			store.table, store.err = tt.table, tt.err
			got, err := c.load(ctx, ask)
			require.Equal(t, tt.want, got)
			require.Equal(t, tt.want == nil, err != nil)
		})
	}
	store.table, store.err = map[rocketmq.Queue]int64{q.key: 0}, nil
	_, err := c.load(ctx, ask)
	require.NoError(t, err)
	require.NoError(t, c.save(ctx, []*queue{q}))
	require.Empty(t, store.saved, "it has that")
	store.table = nil
	_, err = c.load(ctx, ask)
	require.NoError(t, err)
	require.NoError(t, c.save(ctx, []*queue{q}))
	require.Equal(t, []map[rocketmq.Queue]int64{{q.key: 0}}, store.saved)
}
