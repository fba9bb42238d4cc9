package mfile

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"slices"
)

// sectorSize is what a disk writes whole or not at all.
const sectorSize = 512

// PowerLoss returns what the disk may hold after the machine lost its power
// now, as a file system of its own. The same seed gives the same disk; c is
// not changed, so that many can be asked for. Nobody may be writing to c's
// files meanwhile.
//
//   - Of each directory, a random number of the oldest changes since its last
//     sync have happened; whatever is in a directory that has not is lost.
//   - A file whose size was set only by changes that have not happened is empty.
//   - Each page of 4096 bytes that was written since it was last synced is as
//     it was then, or as it is now, or is torn: each of its sectors of 512
//     bytes is old or new; or it was written back on the way and is new up to
//     some multiple of 8 bytes and old after that.
//   - A small file whose writing failed has its old content, none, half of
//     the new one or all.
func (c *Crash) PowerLoss(seed uint64) *Crash {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := powerLoss{rand: rand.New(rand.NewPCG(seed, 0)), done: map[*crashNode]*crashNode{}}
	// How much gets lost differs from one seed to the next: all, nothing,
	// and everything between.
	p.lose = [...]float64{0, 0.1, 0.5, 0.9, 1}[p.rand.IntN(5)]
	return &Crash{root: p.dir(c.root), lock: map[string]bool{}}
}

type powerLoss struct {
	rand *rand.Rand
	lose float64                   // probability with which a dirty page is not new
	done map[*crashNode]*crashNode // a file may have two names
}

func (p *powerLoss) dir(old *crashNode) *crashNode {
	// A scratch directory takes those changes that happened; the sizes that
	// they set are told to the files.
	scratch := &crashNode{entries: maps.Clone(old.entries)}
	kept := p.rand.IntN(len(old.pending) + 1)
	sized := map[*crashNode]bool{}
	for _, d := range old.pending[:kept] {
		d.apply(scratch.entries)
		if d.add == "" && d.node != nil {
			sized[d.node] = true
		}
	}
	n := newCrashDir()
	for _, name := range slices.Sorted(maps.Keys(scratch.entries)) {
		e := scratch.entries[name]
		if p.done[e] == nil {
			if e.children != nil {
				p.done[e] = p.dir(e)
			} else {
				p.done[e] = p.file(e, sized[e])
			}
		}
		n.children[name], n.entries[name] = p.done[e], p.done[e]
	}
	return n
}

func (p *powerLoss) file(old *crashNode, sized bool) *crashNode {
	n := &crashNode{sized: true}
	switch {
	case len(old.maybe) > 0:
		n.disk = slices.Clone(old.maybe[p.rand.IntN(len(old.maybe))])
	case old.sized || sized:
		n.disk = slices.Clone(old.disk)
		for at := 0; at < len(n.disk); at += PageSize {
			end := min(at+PageSize, len(n.disk))
			if !bytes.Equal(n.disk[at:end], old.data[at:end]) {
				p.page(n.disk[at:end], old.data[at:end])
			}
		}
	}
	n.data = slices.Clone(n.disk)
	return n
}

// page decides what becomes of a dirty page.
func (p *powerLoss) page(disk, now []byte) {
	if p.rand.Float64() >= p.lose {
		copy(disk, now)
		return
	}
	switch p.rand.IntN(4) {
	case 0:
		for at := 0; at < len(disk); at += sectorSize {
			if p.rand.IntN(2) == 0 {
				copy(disk[at:min(at+sectorSize, len(disk))], now[at:])
			}
		}
	case 1:
		copy(disk[:p.rand.IntN(len(disk))&^7], now) // no store is torn within 8 bytes
	}
}
