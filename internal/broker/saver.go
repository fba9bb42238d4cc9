package broker

import (
	"context"
	"log/slog"
	"sync/atomic"

	"github.com/gorocketmq/rocketmq/internal/broker/groups"
	"github.com/gorocketmq/rocketmq/internal/broker/offsets"
	"github.com/gorocketmq/rocketmq/internal/broker/persist"
	"github.com/gorocketmq/rocketmq/internal/broker/pop"
	"github.com/gorocketmq/rocketmq/internal/broker/rounds"
	"github.com/gorocketmq/rocketmq/internal/broker/topics"
)

// saver keeps the files of the tables. One goroutine writes, so that nobody
// who changes a table waits for the disk unless he wants to.
type saver struct {
	files   persist.Files
	log     *slog.Logger
	topics  *rounds.Work
	groups  *rounds.Work
	offsets *rounds.Work
	delays  *rounds.Work
	modes   *rounds.Work
	timers  *rounds.Work

	topicTable  *topics.Table
	groupTable  *groups.Table
	offsetTable *offsets.Table
	delayTable  *delayOffsets
	modeTable   *pop.Modes
	pop         *pop.Service
	timerTable  *timers
	flushed     func() int64 // log position before which everything is on disk

	// Tables that could not be saved are tried again with the offsets, which
	// are looked at every few seconds. Both belong to run.
	unsavedTopics, unsavedGroups, unsavedModes bool

	// Offsets that a POP has moved count only with its checkpoint: a state of
	// the table waits until the log is on disk up to heldEnd. Both belong to run.
	held    []byte
	heldEnd int64
	waits   atomic.Bool // there is one
}

// load reads all tables.
func (s *saver) load() error {
	for _, t := range []struct {
		file   string
		decode func([]byte) error
	}{{topics.File, s.topicTable.Decode}, {groups.File, s.groupTable.Decode}, {offsets.File, s.offsetTable.Decode},
		{pop.ModesFile, s.modeTable.Decode}, {pop.OrdersFile, s.pop.LoadOrders}} {
		if _, err := persist.Load(s.files, t.file, t.decode); err != nil {
			return err
		}
	}
	s.timerTable.counts.load(s.files)
	return s.delayTable.load(s.files)
}

// run writes what is asked for until ctx ends.
func (s *saver) run(ctx context.Context) {
	defer s.topics.Close()
	defer s.groups.Close()
	defer s.offsets.Close()
	defer s.delays.Close()
	defer s.modes.Close()
	defer s.timers.Close()
	for {
		select {
		case <-s.topics.Wake():
			s.round(s.topics, s.saveTopics)
		case <-s.groups.Wake():
			s.round(s.groups, s.saveGroups)
		case <-s.offsets.Wake():
			s.round(s.offsets, s.saveOffsets)
			if s.unsavedTopics {
				s.topics.Ask()
			}
			if s.unsavedGroups {
				s.groups.Ask()
			}
			if s.unsavedModes {
				s.modes.Ask()
			}
		case <-s.delays.Wake():
			s.round(s.delays, s.saveDelays)
		case <-s.modes.Wake():
			s.round(s.modes, s.saveModes)
		case <-s.timers.Wake():
			s.round(s.timers, s.saveTimers)
		case <-ctx.Done():
			return
		}
	}
}

func (s *saver) round(w *rounds.Work, save func()) {
	seq := w.Begin()
	save()
	w.End(seq)
}

func (s *saver) saveTopics() { s.unsavedTopics = !s.save(topics.File, s.topicTable.Encode()) }
func (s *saver) saveGroups() { s.unsavedGroups = !s.save(groups.File, s.groupTable.Encode()) }

func (s *saver) saveModes() { s.unsavedModes = !s.save(pop.ModesFile, s.modeTable.Encode()) }

func (s *saver) saveOffsets() {
	if doc := s.pop.Orders(); doc != nil && !s.save(pop.OrdersFile, doc) {
		s.pop.OrdersNotSaved()
	}
	if s.held == nil && s.offsetTable.TakeChanged() {
		s.held = s.offsetTable.Encode()
		s.heldEnd = s.pop.WrittenTo() // after it: what the state counts was written before
	}
	if s.held != nil && s.heldEnd <= s.flushed() {
		if !s.save(offsets.File, s.held) {
			s.offsetTable.NotSaved()
		}
		s.held = nil
	}
	s.waits.Store(s.held != nil)
}

func (s *saver) saveDelays() {
	if doc := s.delayTable.take(s.flushed()); doc != nil && !s.save(delayOffsetFile, doc) {
		s.delayTable.notSaved()
	}
}

// saveTimers saves the progress of the timers, and their counts, which nobody
// needs to have at once, when there is nothing else to save.
func (s *saver) saveTimers() {
	if s.timerTable.save(s.flushed()) {
		return
	}
	if s.timerTable.counts.takeChanged() && !s.save(timerMetricsFile, s.timerTable.counts.encode()) {
		s.timerTable.counts.notSaved()
	}
}

func (s *saver) save(file string, doc []byte) bool {
	err := persist.Save(s.files, file, persist.Indent(doc))
	if err != nil {
		s.log.Error("table not saved, a restart would lose its changes; trying again", "file", file, "err", err)
	}
	return err == nil
}

// all writes everything, at the broker's end, but what waits for the store.
func (s *saver) all() {
	s.saveTopics()
	s.saveGroups()
	s.saveOffsets()
}

// last writes that: the store has flushed everything.
func (s *saver) last() {
	s.saveDelays()
	s.saveTimers()
	s.saveOffsets() // the state that waited
	s.saveOffsets() // and the newest
}

// saveGroups has the group table saved soon; saveGroupsNow waits for it.
func (b *Broker) saveGroups() { b.saver.groups.Ask() }

func (b *Broker) saveGroupsNow() {
	ctx, cancel := context.WithTimeout(b.bg.Context(), settleTimeout)
	defer cancel()
	_ = b.saver.groups.Wait(ctx, b.saver.groups.Ask())
}
