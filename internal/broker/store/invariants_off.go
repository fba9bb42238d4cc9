//go:build !invariants

package store

import (
	"github.com/gorocketmq/rocketmq/internal/broker/store/cq"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// invariants: without the build tag of that name the store does not check
// itself.
const invariants = false

func (s *Store) checkRecords(_, _, _, _ int64) {}

func checkUnit(*cq.Queue, cq.Unit, *wire.Record) {}
