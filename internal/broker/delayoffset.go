package broker

import (
	"maps"
	"sync"

	"github.com/gorocketmq/rocketmq/internal/broker/persist"
	"github.com/gorocketmq/rocketmq/internal/clock"
	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Progress of the delay levels: GET_ALL_DELAY_OFFSET (45), and the file
// config/delayOffset.json. No fields are read.
//
// Answers: 0 with the table.
//
// The file must not be ahead of the log: what it counts as delivered would be
// lost if the machine lost its power before the copies were on disk. So a state
// is written once the log is flushed up to the last copy that it counts. After
// a crash some messages, about as many as were delivered in the last
// flushDelayOffsetInterval, are delivered again; after a clean stop none.

const (
	delayOffsetFile  = "delayOffset.json"
	delayVersionStep = 200 // changes that count the data version up
)

// delayOffsets is how far each delay level has come. All methods are safe for
// concurrent use.
type delayOffsets struct {
	clock clock.Clock

	mu      sync.Mutex      // guards all below; nothing is called under it but the clock
	offsets map[int32]int64 // by level: one more than the queue
	end     int64           // of the last copy in the log
	version wire.DataVersion
	changes int
	changed bool   // since the last state was taken
	state   []byte // to be saved once the log is on disk up to stateEnd; nil: none
	stateAt int64
}

func newDelayOffsets(c clock.Clock) *delayOffsets {
	return &delayOffsets{clock: c, offsets: map[int32]int64{}, version: wire.DataVersion{Timestamp: c.Now().UnixMilli()}}
}

// offset is where a queue goes on.
func (o *delayOffsets) offset(queue int32) int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.offsets[queue+1]
}

// set notes where a queue goes on. end is where in the log the copy of the
// message before ends, 0 if there is none.
func (o *delayOffsets) set(queue int32, offset, end int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.offsets[queue+1] = offset
	o.end = max(o.end, end)
	o.changed = true
	if o.changes++; o.changes%delayVersionStep == 0 {
		o.version = o.version.Next(o.clock.Now().UnixMilli())
	}
}

// encode is the content of the file, compact.
func (o *delayOffsets) encode() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.encodeLocked()
}

func (o *delayOffsets) encodeLocked() []byte {
	d := wire.DelayOffsets{Version: o.version, Offsets: o.offsets}
	return d.AppendJSON(nil)
}

// decode replaces the table by the content of a file.
func (o *delayOffsets) decode(data []byte) error {
	d, err := wire.DecodeDelayOffsets(data)
	if err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.offsets, o.version = d.Offsets, d.Version
	return nil
}

// all is a copy of the table, by level.
func (o *delayOffsets) all() map[int32]int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.offsets)
}

// take is the state to be saved now, nil if there is none: the newest, if the
// log is on disk, up to flushed, with all that it counts. Else the newest is
// kept for a later call.
func (o *delayOffsets) take(flushed int64) []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.changed && (o.state == nil || o.end <= flushed) {
		o.state, o.stateAt, o.changed = o.encodeLocked(), o.end, false
	}
	if o.state == nil || o.stateAt > flushed {
		return nil
	}
	doc := o.state
	o.state = nil
	return doc
}

// waits tells whether a state waits for the log to be flushed.
func (o *delayOffsets) waits() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.state != nil
}

// notSaved has the table saved again.
func (o *delayOffsets) notSaved() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.changed = true
}

// load reads the file. It must come before anything is delivered or saved.
func (o *delayOffsets) load(files persist.Files) error {
	_, err := persist.Load(files, delayOffsetFile, o.decode)
	return err
}

func (b *Broker) handleDelayOffsets(r *remoting.Request) {
	r.Reply(wire.RespSuccess, "", nil, b.delays.progress.encode())
}
