package namesrv

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Settings at run time.
//
//	319 GET_NAMESRV_CONFIG     0, body "key=value" lines, sorted as 5.3 does
//	318 UPDATE_NAMESRV_CONFIG  body "key=value" lines; 0; 16 for a key that must
//	                           not change, 1 for a bad value
//
// Deviations: only keys that mean something here are shown; unknown ones are
// accepted and ignored, as Apache does. Changes last until the restart. A
// request with one bad line changes nothing.

// settings is what 318 can change. A value is immutable once published.
type settings struct {
	order       bool // orderMessageEnable
	returnOrder bool // returnOrderTopicConfigToBroker
	scan        time.Duration
}

// fixedKeys are refused by 318: configBlackList of Apache.
var fixedKeys = [...]string{"configBlackList", "configStorePath", "kvConfigPath"}

func (s *Server) getConfig(r *remoting.Request) {
	set := s.set.Load()
	host, port := s.hostPort()
	lines := []string{
		"bindAddress=" + host,
		"configBlackList=" + strings.Join(fixedKeys[:], ";"),
		"deleteTopicWithBrokerRegistration=false",
		"kvConfigPath=" + s.cfg.ConfigPath,
		"listenPort=" + port,
		"needWaitForService=false",
		"notifyMinBrokerIdChanged=false",
		"orderMessageEnable=" + strconv.FormatBool(set.order),
		"returnOrderTopicConfigToBroker=" + strconv.FormatBool(set.returnOrder),
		"scanNotActiveBrokerInterval=" + strconv.FormatInt(set.scan.Milliseconds(), 10),
		"supportActingMaster=false",
	}
	slices.Sort(lines)
	r.Reply(wire.RespSuccess, "", nil, []byte(strings.Join(lines, "\n")+"\n"))
}

func (s *Server) updateConfig(r *remoting.Request) {
	s.setMu.Lock()
	next := *s.set.Load()
	code, remark := next.apply(string(r.Frame().Body))
	if code == wire.RespSuccess {
		s.set.Store(&next)
	}
	s.setMu.Unlock()
	if code != wire.RespSuccess {
		r.Reply(code, remark, nil, nil)
		return
	}
	s.applyOrder()
	r.Reply(wire.RespSuccess, "", nil, nil)
}

// apply reads lines of the form key=value and returns the answer to them.
func (c *settings) apply(text string) (code int32, remark string) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == '!' {
			continue
		}
		k, v, _ := strings.Cut(line, "=")
		k, v = strings.TrimSpace(k), strings.TrimSpace(v)
		if slices.Contains(fixedKeys[:], k) {
			return wire.RespNoPermission, "Can not update config in black list."
		}
		var err error
		switch k {
		case "orderMessageEnable":
			c.order, err = strconv.ParseBool(v)
		case "returnOrderTopicConfigToBroker":
			c.returnOrder, err = strconv.ParseBool(v)
		case "scanNotActiveBrokerInterval":
			var ms int64
			if ms, err = strconv.ParseInt(v, 10, 32); err == nil && ms <= 0 {
				err = fmt.Errorf("%d is not positive", ms)
			}
			c.scan = time.Duration(ms) * time.Millisecond
		}
		if err != nil {
			return wire.RespSystemError, k + ": " + err.Error()
		}
	}
	return wire.RespSuccess, ""
}
