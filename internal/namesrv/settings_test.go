package namesrv

import (
	"testing"
	"time"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

// FuzzSettings: whatever is sent as settings, what is accepted can be run with.
func FuzzSettings(f *testing.F) {
	for _, s := range []string{"scanNotActiveBrokerInterval=10\n", "orderMessageEnable=true\r\n# x\n=\n", "kvConfigPath=/", "a\nb=c=d"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c := settings{scan: time.Second}
		code, remark := c.apply(text)
		if code == wire.RespSuccess && c.scan <= 0 {
			t.Fatalf("scan every %s", c.scan)
		}
		if (code == wire.RespSuccess) != (remark == "") {
			t.Fatalf("code %d with remark %q", code, remark)
		}
	})
}
