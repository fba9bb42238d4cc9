package store_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/broker/store"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Appenders hand their record to the followers without reading it back from
// the log; it must be what reading gives.
func TestFollowersGetWhatIsInTheLog(t *testing.T) {
	for _, host := range []string{"10.1.2.3:10911", "[2001:db8::1]:10911"} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, false, func(c *store.Config) {
				c.StoreHost, c.CommitLogFileSize = netip.MustParseAddrPort(host), 64<<10
			})
			var got []string
			r.Watch(func(rec *wire.Record) { got = append(got, fmt.Sprintf("%+v", *rec)) })
			want := func(phy int64) string {
				b, ok := r.ViewMessage(nil, phy)
				require.True(t, ok)
				var rec wire.Record
				_, err := wire.DecodeRecord(b, &rec)
				require.NoError(t, err)
				return fmt.Sprintf("%+v", rec)
			}
			var all []string
			for i := range 40 {
				m := message("T", int32(i%3), strings.Repeat("x", i), "TAGS", "a", "KEYS", fmt.Sprint(i))
				m.Flag, m.ReconsumeTimes, m.PreparedOffset = int32(i), int32(i%5), int64(i)
				m.SysFlag = []int32{0, wire.SysMultiTags, wire.SysTranPrepared, wire.SysTranCommit}[i%4]
				if i%2 == 0 {
					m.BornHost = netip.MustParseAddrPort("[2001:db8::7]:5555")
				}
				if i%3 == 0 {
					m.Properties = m.Properties[:len(m.Properties)-1] // the store ends them
				}
				if i%7 == 0 {
					m.Topic = []byte(wire.RetryPrefix + strings.Repeat("g", 150))
				}
				if i == 20 {
					m.Body = make([]byte, 60<<10) // goes to the next file
				}
				synctest.Wait() // the dispatcher's own goroutine sleeps
				res, _ := r.Put(m, nil)
				require.NoError(t, res.Err)
				all = append(all, want(res.PhyOffset))
				require.Equal(t, all, got, "dispatched when Put returns")
			}
		})
	}
}
