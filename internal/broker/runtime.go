package broker

import (
	"fmt"
	"strconv"
	"time"

	"github.com/gorocketmq/rocketmq/internal/remoting"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// The broker itself: GET_BROKER_CONFIG (26), GET_BROKER_RUNTIME_INFO (28).
//
// Answers: 0. 26 lists the keys of broker.conf that this broker understands,
// 28 the keys that mqadmin clusterList, brokerStatus and the dashboard read;
// clusterList parses several of them without a look whether they are there.
//
// Unlike Apache: queue sizes of thread pools that do not exist here are 0, and
// yesterday's totals count from the start of the process.

func (b *Broker) handleBrokerConfig(r *remoting.Request) {
	v := wire.DataVersion{Timestamp: b.started.UnixMilli()}
	r.Reply(wire.RespSuccess, "", &wire.BrokerConfigResponse{Version: string(v.AppendJSON(nil))}, b.cfg.properties())
}

func (b *Broker) handleRuntimeInfo(r *remoting.Request) {
	body := wire.KVTable{Table: b.runtimeInfo()}
	r.Reply(wire.RespSuccess, "", nil, body.AppendJSON(nil))
}

func (b *Broker) runtimeInfo() map[string]string {
	now := b.clock.Now()
	st := b.store.Stats()
	s := &b.stats
	puts, putBytes, gets := s.putCount.Load(), s.putBytes.Load(), s.getCount.Load()
	itoa := func(n int64) string { return strconv.FormatInt(n, 10) }
	ratio := func(used float64) string { return strconv.FormatFloat(used, 'f', 2, 64) }
	average := 0.0
	if puts > 0 {
		average = float64(putBytes) / float64(puts)
	}
	transferred := s.rates(now, func(x sample) int64 { return x.got })
	info := map[string]string{
		"brokerActive":                    "true",
		"brokerVersion":                   itoa(int64(wire.Version479)),
		"brokerVersionDesc":               "V5_3_3",
		"bootTimestamp":                   itoa(b.started.UnixMilli()),
		"runtime":                         uptime(now.Sub(b.started)),
		"startAcceptSendRequestTimeStamp": "0",

		"putTps":               s.rates(now, func(x sample) int64 { return x.put }),
		"getTransferredTps":    transferred, // 5.x
		"getTransferedTps":     transferred, // 4.9
		"getFoundTps":          s.rates(now, func(x sample) int64 { return x.found }),
		"getMissTps":           s.rates(now, func(x sample) int64 { return x.missed }),
		"getTotalTps":          s.rates(now, func(x sample) int64 { return x.found + x.missed }),
		"putMessageTimesTotal": itoa(puts), "putMessageFailedTimes": itoa(s.putFailed.Load()), "putMessageSizeTotal": itoa(putBytes),
		"putMessageAverageSize":   strconv.FormatFloat(average, 'f', -1, 64),
		"putMessageEntireTimeMax": "0", "getMessageEntireTimeMax": "0", "putMessageDistributeTime": "null",
		"putLatency99": "0.00", "putLatency999": "0.00",
		"msgPutTotalYesterdayMorning": "0", "msgPutTotalTodayMorning": "0", "msgPutTotalTodayNow": itoa(puts),
		"msgGetTotalYesterdayMorning": "0", "msgGetTotalTodayMorning": "0", "msgGetTotalTodayNow": itoa(gets),

		"commitLogMinOffset": itoa(st.MinPhy), "commitLogMaxOffset": itoa(st.MaxPhy), "dispatchBehindBytes": itoa(st.DispatchBehind),
		"dispatchMaxBuffer": "0", "remainHowManyDataToFlush": itoa(st.MaxPhy-st.Flushed) + " B",
		"remainTransientStoreBufferNumbs": "2147483647",
		"commitLogDiskRatio":              ratio(st.LogDiskUsed), "consumeQueueDiskRatio": ratio(st.QueueDiskUsed),
		"commitLogDiskRatio_" + b.cfg.Store.Dir: ratio(st.LogDiskUsed),
		"commitLogDirCapacity": fmt.Sprintf("Total : %.1f GiB, Free : %.1f GiB.",
			float64(st.DiskTotal)/(1<<30), float64(st.DiskAvailable)/(1<<30)),
		"earliestMessageTimeStamp": itoa(b.earliest()), "pageCacheLockTimeMills": "0",

		"timerReadBehind": "0", "timerOffsetBehind": "0", "timerCongestNum": "0", "timerEnqueueTps": "0.0", "timerDequeueTps": "0.0",
		"EndTransactionQueueSize": "0", "EndTransactionThreadPoolQueueCapacity": "0",
	}
	for _, pool := range [...]string{"send", "pull", "litePull", "query", "ack"} {
		info[pool+"ThreadPoolQueueSize"] = "0"
		info[pool+"ThreadPoolQueueCapacity"] = itoa(workerQueue)
		info[pool+"ThreadPoolQueueHeadWaitTimeMills"] = "0"
	}
	b.delayInfo(info)
	return info
}

// earliest is the store time of the oldest message, the present if there is none.
func (b *Broker) earliest() int64 {
	st := b.store.Stats()
	var rec wire.Record
	if buf, ok := b.store.ViewMessage(nil, st.MinPhy); ok {
		if _, err := wire.DecodeRecord(buf, &rec); err == nil {
			return rec.StoreTime
		}
	}
	return b.clock.Now().UnixMilli()
}

// uptime is a duration as Apache's broker writes it.
func uptime(d time.Duration) string {
	s := int64(d / time.Second)
	return fmt.Sprintf("[ %d days, %d hours, %d minutes, %d seconds ]", s/86400, s/3600%24, s/60%60, s%60)
}
