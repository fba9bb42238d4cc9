package store

import (
	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

const (
	// maxGroup bounds the records that wait for the flusher, in bytes.
	// Appenders wait beyond it: the disk is slower than they are.
	maxGroup = 16 << 20
	// keepGroup bounds the buffer that is kept for the next group.
	keepGroup = 4 << 20
)

// group is a run of the log's end that is not in the files yet. With
// synchronous flush appenders add to a group, and the flusher takes it and
// writes it with one call. Appenders do not copy into the mapping then: the
// page that is just going to the disk is the one that they append to, and
// whoever touches it waits for the disk, with the append lock in hand.
type group struct {
	b     []byte
	parts []part // of b, one per file
	// end is the log's end after the group, storeTime that of its last record.
	end, storeTime int64
	begun          bool // the flusher has been woken for it
}

// part is b[from:to] of a group, the next bytes of a file.
type part struct {
	f        *mfile.File // held
	from, to int
	last     bool // the file is full with it
}

func (g *group) empty() bool { return len(g.b) == 0 }

// begin reports whether the flusher must be woken for the group: that is so
// once, with the first record. (A filler may have been there before it.)
func (g *group) begin() bool {
	first := !g.begun
	g.begun = true
	return first
}

// full reports whether a group takes no further n bytes. An empty one takes
// everything.
func (g *group) full(n int64) bool {
	return !g.empty() && int64(len(g.b))+n > maxGroup
}

// add appends to what goes into f.
func (g *group) add(f *mfile.File, b []byte) {
	n := len(g.parts)
	if n == 0 || g.parts[n-1].f != f {
		f.Hold() // it is the newest one, which nobody removes
		g.parts = append(g.parts, part{f: f, from: len(g.b)})
		n++
	}
	g.b = append(g.b, b...)
	g.parts[n-1].to = len(g.b)
}

// fill ends f with a filler.
func (g *group) fill(f *mfile.File, rest int) {
	var b [wire.BlankSize]byte
	g.add(f, wire.AppendBlank(b[:0], rest))
	g.parts[len(g.parts)-1].last = true
}

// write puts the group into its files and makes it durable. It blocks for the
// disk.
func (g *group) write() error {
	for _, p := range g.parts {
		if err := p.f.Append(g.b[p.from:p.to]); err != nil {
			return err
		}
		if p.last {
			p.f.SetWrote(p.f.Size())
		}
		if err := p.f.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// reset empties the group for the next use.
func (g *group) reset() {
	for _, p := range g.parts {
		p.f.Release()
	}
	clear(g.parts)
	g.b, g.parts, g.begun = g.b[:0], g.parts[:0], false
	if cap(g.b) > keepGroup {
		g.b = nil
	}
}
