package deadlines

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gorocketmq/rocketmq/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

type thing struct{ e Entry }

// Against a list that is searched.
func TestHeap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := New(func(x *thing) *Entry { return &x.e })
		var model []*thing
		earliest := func() time.Time {
			return slices.MinFunc(model, func(a, b *thing) int { return a.e.At.Compare(b.e.At) }).e.At
		}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			if len(model) == 0 || rapid.IntRange(0, 2).Draw(t, "what") > 0 {
				x := &thing{Entry{At: time.UnixMilli(rapid.Int64Range(0, 20).Draw(t, "at"))}}
				isFirst := len(model) == 0 || x.e.At.Before(earliest())
				require.Equal(t, isFirst, h.Push(x))
				model = append(model, x)
			} else {
				i := rapid.IntRange(0, len(model)-1).Draw(t, "which")
				h.Remove(model[i])
				model = slices.Delete(model, i, i+1)
			}
			require.Equal(t, len(model), h.Len())
			if len(model) > 0 {
				require.Equal(t, earliest(), h.Next())
				require.Equal(t, earliest(), h.First().e.At)
			}
		}
	})
}
