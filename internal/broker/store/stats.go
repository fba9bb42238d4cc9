package store

// Stats are a store's figures at one moment.
type Stats struct {
	MinPhy         int64 // where the oldest commit log file starts
	MaxPhy         int64 // end of the log
	Flushed        int64 // log position before which everything is on disk
	Flushes        int64 // how often the log has been flushed
	DispatchBehind int64 // bytes of the log that consume queues do not show yet
	LogFiles       int
	Queues         int
	DiskTotal      int64 // bytes of the disk the log is on; 0 if not known
	DiskAvailable  int64 // bytes of it that are free
	// LogDiskUsed and QueueDiskUsed are the used shares, 0 to 1, of the disks
	// of log and consume queues, as [Config.DiskUsage] tells them; 0 if not
	// known.
	LogDiskUsed, QueueDiskUsed float64
}

// DiskUsed is the used share of the disk, 0 to 1; 0 if not known.
func (st Stats) DiskUsed() float64 {
	if st.DiskTotal <= 0 {
		return 0
	}
	return float64(st.DiskTotal-st.DiskAvailable) / float64(st.DiskTotal)
}

// Stats looks at the store and asks the system about its disk.
func (s *Store) Stats() Stats {
	st := Stats{
		MinPhy: s.log.begin(), MaxPhy: s.log.position(), Flushed: s.flushed.Load(), Flushes: s.flushes.Load(),
		DispatchBehind: max(0, s.confirmed()-s.dispatch.pos.Load()),
		LogFiles:       len(s.log.seq.Files()),
		Queues:         s.queues.count(),
	}
	if total, avail, err := s.cfg.FS.Usage(s.cfg.Dir); err == nil {
		st.DiskTotal, st.DiskAvailable = total, avail
	}
	st.LogDiskUsed, _ = s.cfg.DiskUsage(s.cleaning.disks.paths[0])
	st.QueueDiskUsed, _ = s.cfg.DiskUsage(s.cleaning.disks.paths[1])
	return st
}

// Topics lists the topics that have queues with records, sorted.
func (s *Store) Topics() []string { return s.queues.topics() }

// Queues lists the ids of a topic's queues that have ever had a record,
// sorted.
func (s *Store) Queues(topic string) []int32 { return s.queues.ids(topic) }
