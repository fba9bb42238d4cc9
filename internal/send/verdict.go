package send

import (
	"errors"
	"time"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/remoting"
)

// verdict is what a failed attempt means.
type verdict struct {
	retry   bool          // another attempt, on another broker if there is one, may succeed
	avoid   time.Duration // how long other sends had better not come here; 0: no reason
	refresh bool          // the route may be out of date
}

// judge is the one place that decides on retries.
func judge(err error) verdict {
	var be *rocketmq.BrokerError
	if errors.As(err, &be) {
		return judgeCode(be.Code)
	}
	switch {
	case errors.Is(err, remoting.ErrGoAway):
		return verdict{retry: true, refresh: true}
	case errors.Is(err, rocketmq.ErrClosed), errors.Is(err, rocketmq.ErrUnauthorized), errors.Is(err, remoting.ErrFrameTooLarge):
		return verdict{}
	case errors.Is(err, rocketmq.ErrTimeout), errors.Is(err, rocketmq.ErrConnection):
		return verdict{retry: true, avoid: avoidDead, refresh: true}
	case errors.Is(err, rocketmq.ErrUnavailable):
		return verdict{retry: true, avoid: avoidSick, refresh: true}
	}
	return verdict{}
}

// judgeCode goes by the set of DefaultMQProducer (retryResponseCodes): codes
// that another broker may not answer with.
func judgeCode(c rocketmq.Code) verdict {
	switch c {
	case rocketmq.CodeSystemBusy, rocketmq.CodeSystemError, codeNoBuyerID, codeNotInCurrentUnit:
		return verdict{retry: true}
	case rocketmq.CodeServiceNotAvailable, rocketmq.CodeGoAway, rocketmq.CodeNotLeader:
		return verdict{retry: true, avoid: avoidSick, refresh: true}
	case rocketmq.CodeNoPermission, rocketmq.CodeTopicNotExist:
		return verdict{retry: true, refresh: true}
	}
	return verdict{}
}

// Of no use to applications, but in Java's set.
const (
	codeNoBuyerID        rocketmq.Code = 204
	codeNotInCurrentUnit rocketmq.Code = 205
)
