package rocketmq

import (
	"strconv"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Code is the response code of a broker or name server, numbered as
// ResponseCode of Apache RocketMQ. Codes not listed here occur and are valid.
type Code int32

// The codes an application may meet in a [BrokerError] or a
// [NameServerAnswer].
const (
	CodeSuccess              = Code(wire.RespSuccess)
	CodeSystemError          = Code(wire.RespSystemError) // anything the server has no better code for
	CodeSystemBusy           = Code(wire.RespSystemBusy)  // flow control
	CodeNotSupported         = Code(wire.RespRequestCodeNotSupported)
	CodeFlushDiskTimeout     = Code(wire.RespFlushDiskTimeout)    // stored, not yet flushed
	CodeSlaveNotAvailable    = Code(wire.RespSlaveNotAvailable)   // stored, no replica to copy to
	CodeFlushSlaveTimeout    = Code(wire.RespFlushSlaveTimeout)   // stored, not yet replicated
	CodeMessageIllegal       = Code(wire.RespMessageIllegal)      // size, properties, timer out of range
	CodeServiceNotAvailable  = Code(wire.RespServiceNotAvailable) // store not writable: role, disk, shutdown
	CodeNoPermission         = Code(wire.RespNoPermission)        // permission bits or access control
	CodeTopicNotExist        = Code(wire.RespTopicNotExist)
	CodePullNotFound         = Code(wire.RespPullNotFound)         // nothing new
	CodePullRetryImmediately = Code(wire.RespPullRetryImmediately) // nothing that matches
	CodePullOffsetMoved      = Code(wire.RespPullOffsetMoved)      // outside the queue's range
	CodeQueryNotFound        = Code(wire.RespQueryNotFound)
	CodeSubscriptionInvalid  = Code(wire.RespSubscriptionParseFailed)
	CodeSubscriptionMissing  = Code(wire.RespSubscriptionNotExist)
	CodeSubscriptionOutdated = Code(wire.RespSubscriptionNotLatest)
	CodeGroupNotExist        = Code(wire.RespSubscriptionGroupNotExist)
	CodeInvalidParameter     = Code(wire.RespInvalidParameter) // since 5.3.2; earlier brokers answer CodeSystemError
	CodeConsumerNotOnline    = Code(wire.RespConsumerNotOnline)
	CodeFlowControl          = Code(wire.RespFlowControl) // pulls
	CodeNotLeader            = Code(wire.RespNotLeaderForQueue)
	CodeIllegalOperation     = Code(wire.RespIllegalOperation)
	CodeGoAway               = Code(wire.RespGoAway) // the server is about to stop
)

// String is the name Apache gives the code, or its number.
func (c Code) String() string {
	if name := wire.ResponseName(int32(c)); name != "" {
		return name
	}
	return "code " + strconv.Itoa(int(c))
}
