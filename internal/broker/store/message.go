package store

import "net/netip"

// Message is one message on its way into the log. The store copies what it
// keeps; all slices may be reused when Put returns.
type Message struct {
	Topic          []byte
	QueueID        int32
	Flag           int32 // the user's
	SysFlag        int32 // wire.Sys... bits; the store sets the bits for IPv6 hosts
	ReconsumeTimes int32
	BornTime       int64 // ms
	PreparedOffset int64 // prepared transaction offset
	BornHost       netip.AddrPort
	Body           []byte // for PutBatch: the client's batch
	Properties     []byte // encoded; for PutBatch: appended to those of every item
	NoWait         bool   // the answer does not wait for flush or replicas (property WAIT=false)
}

// Status is what became of a message, as Apache's PutMessageStatus.
type Status uint8

// The statuses. The message is stored with the first four and only then.
const (
	PutOK Status = iota
	FlushDiskTimeout
	FlushSlaveTimeout
	SlaveNotAvailable
	ServiceNotAvailable     // closed, or not writable now
	CreateMappedFileFailed  // no file for it could be made; see PutResult.Err
	MessageIllegal          // too large, or against a rule; see PutResult.Err
	PropertiesSizeExceeded  // more than 32,767 bytes
	OSPageCacheBusy         // appending takes too long now
	InSyncReplicasNotEnough // too few replicas to accept it
	UnknownError            // see PutResult.Err
)

// String returns Apache's name of the status.
func (s Status) String() string {
	switch s {
	case PutOK:
		return "PUT_OK"
	case FlushDiskTimeout:
		return "FLUSH_DISK_TIMEOUT"
	case FlushSlaveTimeout:
		return "FLUSH_SLAVE_TIMEOUT"
	case SlaveNotAvailable:
		return "SLAVE_NOT_AVAILABLE"
	case ServiceNotAvailable:
		return "SERVICE_NOT_AVAILABLE"
	case CreateMappedFileFailed:
		return "CREATE_MAPPED_FILE_FAILED"
	case MessageIllegal:
		return "MESSAGE_ILLEGAL"
	case PropertiesSizeExceeded:
		return "PROPERTIES_SIZE_EXCEEDED"
	case OSPageCacheBusy:
		return "OS_PAGE_CACHE_BUSY"
	case InSyncReplicasNotEnough:
		return "IN_SYNC_REPLICAS_NOT_ENOUGH"
	default:
		return "UNKNOWN_ERROR"
	}
}

// Stored reports whether the message is in the log.
func (s Status) Stored() bool { return s <= SlaveNotAvailable }

// PutResult says where a message went.
type PutResult struct {
	Status      Status
	PhyOffset   int64 // of the record, or of a batch's first one
	QueueOffset int64 // likewise
	StoreTime   int64 // ms
	End         int64 // log position after the last byte written
	// PhyOffsets are the positions of all records of a batch, appended to the
	// slice given to PutBatch; nil for a single message.
	PhyOffsets []int64
	// Err tells why the message was not stored; nil with Status.Stored().
	Err error
}

// Waiter takes an answer that comes later: once the record is on disk, or on
// enough replicas, or has waited too long. Stored is called exactly once, by
// whoever finishes it, and must not block.
type Waiter interface{ Stored(PutResult) }
