package store

import "context"

// Store is one open store directory.
type Store struct{}

func Open(cfg Config) (*Store, error)                                         { panic("skeleton") }
func (s *Store) Close() error                                                 { panic("skeleton") }
func (s *Store) Abandon()                                                     { panic("skeleton") }
func (s *Store) Put(m *Message, w Waiter) (PutResult, bool)                   { panic("skeleton") }
func (s *Store) PutBatch(m *Message, phy []int64, w Waiter) (PutResult, bool) { panic("skeleton") }
func (s *Store) Get(dst []byte, q GetRequest) ([]byte, GetResult)             { panic("skeleton") }
func (s *Store) MaxOffset(topic string, queueID int32) int64                  { panic("skeleton") }
func (s *Store) MinOffset(topic string, queueID int32) int64                  { panic("skeleton") }
func (s *Store) OffsetByTime(topic string, queueID int32, ms int64, upper bool) int64 {
	panic("skeleton")
}
func (s *Store) EarliestStoreTime(topic string, queueID int32) int64            { panic("skeleton") }
func (s *Store) StoreTimeAt(topic string, queueID int32, offset int64) int64    { panic("skeleton") }
func (s *Store) MessageInMemory(topic string, queueID int32, offset int64) bool { panic("skeleton") }
func (s *Store) ViewMessage(dst []byte, phy int64) ([]byte, bool)               { panic("skeleton") }
func (s *Store) Topics() []string                                               { panic("skeleton") }
func (s *Store) Queues(topic string) []int32                                    { panic("skeleton") }
func (s *Store) DeleteTopic(ctx context.Context, topic string) error            { panic("skeleton") }
func (s *Store) WaitDispatched(ctx context.Context) error                       { panic("skeleton") }
func (s *Store) Stats() Stats                                                   { panic("skeleton") }

// Stats are a store's figures at one moment.
type Stats struct {
	MinPhy         int64 // start of the oldest commit log file
	MaxPhy         int64 // end of the log
	Flushed        int64 // log position that is on disk
	DispatchBehind int64 // bytes of log that consume queues do not show yet
	LogFiles       int
	Queues         int
	DiskUsed       float64 // used share of the disk the log is on, 0 to 1; 0 if not known
}
