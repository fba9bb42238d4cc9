package txn

import (
	"errors"
	"log/slog"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// State is the outcome of a local transaction (LocalTransactionState of
// Apache's client).
type State uint8

// The states. The zero state is Unknown.
const (
	Unknown  State = iota // not known yet: the broker asks later
	Commit                // the message is to be delivered
	Rollback              // the message is to be dropped
)

// String is "unknown", "commit" or "rollback".
func (s State) String() string {
	switch s {
	case Unknown:
		return "unknown"
	case Commit:
		return "commit"
	case Rollback:
		return "rollback"
	}
	return "invalid"
}

// flag is the state as requests have it.
func (s State) flag() int32 {
	switch s {
	case Commit:
		return wire.SysTranCommit
	case Rollback:
		return wire.SysTranRollback
	}
	return 0
}

// ErrDecided is a decision about a transaction that has been decided the other
// way before.
var ErrDecided = errors.New("txn: the transaction has been decided the other way")

// errState is a state that does not exist.
var errState = errors.New("txn: the state is none of Unknown, Commit and Rollback, and so Unknown")

// Result says what became of a message that was sent in a transaction.
type Result struct {
	MessageID     string // made by the producer; consumers see it as MessageView.ID
	TransactionID string // Tx.ID; checks have it as MessageView.TransactionID
	OffsetID      string // made by the broker; of the half message
	// Queue is where the message goes, or would go, when it is committed.
	Queue rocketmq.Queue
	// State is what the broker has confirmed. Unknown: it will ask.
	State State
}

// LogValue implements [slog.LogValuer].
func (r Result) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("id", r.MessageID),
		slog.Any("queue", r.Queue),
		slog.String("state", r.State.String()),
	)
}
