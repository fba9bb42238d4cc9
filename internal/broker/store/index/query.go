package index

import (
	"iter"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Query yields the log positions of records that may have the key or unique
// id, newest first. Others can be among them, because the index has hashes
// instead of keys and seconds instead of times, and a position can come twice:
// whoever asks looks at the records. None is missing whose store time is from
// begin to end (ms, both included), as long as the clock that gave store times
// has not gone back.
func (x *Index) Query(topic, key []byte, begin, end int64) iter.Seq[int64] {
	return x.query(wire.IndexHashOf(wire.IndexHashPrefix(topic), key), begin, end)
}

func (x *Index) query(hash int32, begin, end int64) iter.Seq[int64] {
	return func(yield func(int64) bool) {
		files := x.list()
		for i := len(files) - 1; i >= 0; i-- {
			f := files[i]
			if !f.Hold() {
				continue // cleaned just now
			}
			first := f.beginTime.Load()
			ok := !f.overlaps(begin, end) || f.walk(hash, begin, end, yield)
			f.Release()
			if !ok || first < begin {
				return
			}
		}
	}
}

// overlaps reports whether the file can have records of a time range. Its
// times are in no order if the clock went back.
func (f *file) overlaps(begin, end int64) bool {
	a, b := f.beginTime.Load(), f.endTime.Load()
	return max(a, b) >= begin && min(a, b) <= end
}

// walk yields the entries of one hash from the newest on; false when yield
// wants no more. An entry stands for a time within its second, or, where the
// clock went back, for an earlier one.
func (f *file) walk(hash int32, begin, end int64, yield func(int64) bool) bool {
	first := f.beginTime.Load()
	for n := f.newest(hash); n > 0; {
		e := f.entry(n)
		t := first
		if n > 1 { // Apache counts the seconds of the first one from the file before
			t += int64(e.seconds) * 1000
		}
		if e.hash == hash && t+999 >= begin && (t <= end || e.seconds == 0) && !yield(e.phy) {
			return false
		}
		if t+999 < begin || e.seconds < 0 || e.prev >= n {
			return true
		}
		n = e.prev
	}
	return true
}
