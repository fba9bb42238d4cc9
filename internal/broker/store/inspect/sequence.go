package inspect

import (
	"fmt"
	"path"

	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
)

// file is one file of a sequence.
type file struct {
	path  string
	start int64 // place of its first byte in the sequence
	size  int64
	known bool // something is wrong with it and has been reported
}

func (f file) end() int64 { return f.start + f.size }

// sequence is the files of one directory that make up one long file.
type sequence struct {
	dir   string
	size  int64 // what each file should have
	files []file
	// broken: something about its files was reported, so that missing content
	// is no news.
	broken bool
	gaps   []span // parts whose files are missing
}

// span is a part of a sequence or of the log.
type span struct{ from, to int64 }

// guessSize finds the size that the files of a directory were made with: the
// distance of neighbours' names, else the size that the most files have. unit
// is what it must be a multiple of.
func guessSize(dirs [][]entry, unit int64) int64 {
	counts := map[int64]int{}
	step := int64(0)
	for _, es := range dirs {
		last, have := int64(0), false
		for _, e := range es {
			start, ok := mfile.ParseName(e.name)
			if e.dir || e.err != nil || !ok {
				continue
			}
			if e.size > 0 && e.size%unit == 0 {
				counts[e.size]++
			}
			if d := start - last; have && d > 0 && d%unit == 0 && (step == 0 || d < step) {
				step = d
			}
			last, have = start, true
		}
	}
	best := int64(0)
	for size, n := range counts {
		if m := counts[best]; n > m || n == m && size > best {
			best = size
		}
	}
	// Sizes that agree tell more than names: the file between two may be
	// missing. A single size may be that of a file that was cut.
	if step > 0 && counts[best] <= 1 {
		return step
	}
	return best
}

// sequence sorts out the files of a directory and reports those that cannot
// belong to it.
func (c *checker) sequence(dir string, es []entry, size int64) *sequence {
	s := &sequence{dir: dir, size: size}
	n := len(es)
	for n > 0 && es[n-1].dir {
		n--
	}
	for i, e := range es {
		if e.dir {
			continue // as the brokers do
		}
		f := file{path: path.Join(dir, e.name), size: e.size}
		start, ok := mfile.ParseName(e.name)
		f.start = start
		switch {
		case e.err != nil:
			c.damage(f.path, whole, "cannot be read: %v", e.err)
			s.broken = true
			continue
		case i == n-1 && e.size == 0 && ok:
			c.note(f.path, whole, "the newest file is empty; the next start removes it")
			c.sum.Files++
			continue
		case !ok:
			c.damage(f.path, 0, "foreign file: its name is not 20 digits; a broker does not start with it")
			c.sum.Files++
			continue
		case start%size != 0:
			c.damage(f.path, 0, "foreign file: its name is no multiple of the file size %d", size)
			c.sum.Files++
			continue
		case e.size != size:
			c.damage(f.path, min(e.size, size), "the file has %d bytes, want %d", e.size, size)
			f.known = true
		}
		s.broken = s.broken || f.known
		if k := len(s.files); k > 0 {
			if want := s.files[k-1].start + size; f.start > want {
				c.damage(path.Join(dir, mfile.FileName(want)), whole, "missing: %s", missing(want, f.start, size))
				s.gaps, s.broken = append(s.gaps, span{want, f.start}), true
			}
		}
		c.sum.Files++
		s.files = append(s.files, f)
	}
	return s
}

func missing(from, to, size int64) string {
	if n := (to - from) / size; n > 1 {
		return fmt.Sprintf("%d files up to %s are not there", n, mfile.FileName(to))
	}
	return "the files before and after it are there"
}

// find returns the file that has a place, nil if there is none.
func (s *sequence) find(at int64) *file {
	for i := len(s.files) - 1; i >= 0; i-- {
		if f := &s.files[i]; at >= f.start {
			if at < f.end() {
				return f
			}
			return nil
		}
	}
	return nil
}

// place is the file and the byte within it of a place in the sequence, also
// of one whose file is missing.
func (s *sequence) place(at int64) (p string, off int64) {
	if f := s.find(at); f != nil {
		return f.path, at - f.start
	}
	start := at - at%s.size
	return path.Join(s.dir, mfile.FileName(start)), at - start
}
