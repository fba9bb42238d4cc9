package broker

import (
	"context"
	"log/slog"

	"github.com/gorocketmq/rocketmq/internal/broker/groups"
	"github.com/gorocketmq/rocketmq/internal/broker/offsets"
	"github.com/gorocketmq/rocketmq/internal/broker/persist"
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

	topicTable  *topics.Table
	groupTable  *groups.Table
	offsetTable *offsets.Table
	delayTable  *delayOffsets
	flushed     func() int64 // log position before which everything is on disk

	// Tables that could not be saved are tried again with the offsets, which
	// are looked at every few seconds. Both belong to run.
	unsavedTopics, unsavedGroups bool
}

// load reads all tables.
func (s *saver) load() error {
	for _, t := range []struct {
		file   string
		decode func([]byte) error
	}{{topics.File, s.topicTable.Decode}, {groups.File, s.groupTable.Decode}, {offsets.File, s.offsetTable.Decode}} {
		if _, err := persist.Load(s.files, t.file, t.decode); err != nil {
			return err
		}
	}
	return s.delayTable.load(s.files)
}

// run writes what is asked for until ctx ends.
func (s *saver) run(ctx context.Context) {
	defer s.topics.Close()
	defer s.groups.Close()
	defer s.offsets.Close()
	defer s.delays.Close()
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
		case <-s.delays.Wake():
			s.round(s.delays, s.saveDelays)
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

func (s *saver) saveOffsets() {
	if s.offsetTable.TakeChanged() && !s.save(offsets.File, s.offsetTable.Encode()) {
		s.offsetTable.NotSaved()
	}
}

func (s *saver) saveDelays() {
	if doc := s.delayTable.take(s.flushed()); doc != nil && !s.save(delayOffsetFile, doc) {
		s.delayTable.notSaved()
	}
}

func (s *saver) save(file string, doc []byte) bool {
	err := persist.Save(s.files, file, persist.Indent(doc))
	if err != nil {
		s.log.Error("table not saved, a restart would lose its changes; trying again", "file", file, "err", err)
	}
	return err == nil
}

// all writes everything, at the broker's end, but the progress of the delay
// levels, which waits for the store.
func (s *saver) all() {
	s.saveTopics()
	s.saveGroups()
	s.saveOffsets()
}

// saveGroups has the group table saved soon; saveGroupsNow waits for it.
func (b *Broker) saveGroups() { b.saver.groups.Ask() }

func (b *Broker) saveGroupsNow() {
	ctx, cancel := context.WithTimeout(b.bg.Context(), settleTimeout)
	defer cancel()
	_ = b.saver.groups.Wait(ctx, b.saver.groups.Ask())
}
