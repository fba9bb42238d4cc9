package wire

import "strconv"

// Keys of RunningInfo.Properties that the admin tools read.
const (
	InfoNameserver = "PROP_NAMESERVER_ADDR"
	InfoPoolSize   = "PROP_THREADPOOL_CORE_SIZE"
	InfoOrderly    = "PROP_CONSUMEORDERLY"
	InfoType       = "PROP_CONSUME_TYPE"
	InfoVersion    = "PROP_CLIENT_VERSION" // text such as V5_3_3
	InfoStart      = "PROP_CONSUMER_START_TIMESTAMP"
)

// RunningInfo is the body of GET_CONSUMER_RUNNING_INFO (307). A broker passes it
// on untouched.
type RunningInfo struct {
	Properties    map[string]string
	Subscriptions []Subscription
	Queues        map[MessageQueue]ProcessQueueInfo
	Status        map[string]ConsumeStatus // by topic
	UserInfo      map[string]string        // 5.x
	Stack         string                   // of the threads, if asked for
}

// ProcessQueueInfo is a consumer's state of one queue.
type ProcessQueueInfo struct {
	CommitOffset     int64
	CachedMinOffset  int64
	CachedMaxOffset  int64
	CachedCount      int32
	CachedMiB        int32
	TransactionMin   int64 // messages an orderly consumer has in hand
	TransactionMax   int64
	TransactionCount int32
	Locked           bool
	Dropped          bool
	TryUnlockTimes   int64
	LastLockTime     int64 // ms since 1970
	LastPullTime     int64
	LastConsumeTime  int64
}

// ConsumeStatus is how a consumer does with one topic.
type ConsumeStatus struct {
	PullRT      float64 // ms
	PullTPS     float64
	ConsumeRT   float64 // ms
	OKTPS       float64
	FailedTPS   float64
	FailedCount int64 // within the last hour
}

// AppendJSON appends the body.
func (d *RunningInfo) AppendJSON(dst []byte) []byte {
	w := jsonWriter{b: dst}
	w.open('{')
	w.optText("jstack", d.Stack)
	w.empty("mqPopTable")
	w.key("mqTable")
	w.open('{')
	for _, q := range sortedQueues(d.Queues) {
		w.queueKey(q)
		p := d.Queues[q]
		w.processQueue(&p)
	}
	w.close('}')
	w.textMap("properties", d.Properties)
	w.key("statusTable")
	w.open('{')
	for _, topic := range sortedKeys(d.Status) {
		w.textKey(topic)
		s := d.Status[topic]
		w.open('{')
		w.int("consumeFailedMsgs", s.FailedCount)
		w.float("consumeFailedTPS", s.FailedTPS)
		w.float("consumeOKTPS", s.OKTPS)
		w.float("consumeRT", s.ConsumeRT)
		w.float("pullRT", s.PullRT)
		w.float("pullTPS", s.PullTPS)
		w.close('}')
	}
	w.close('}')
	w.subscriptions("subscriptionSet", d.Subscriptions)
	w.textMap("userConsumerInfo", d.UserInfo)
	w.close('}')
	return w.b
}

// processQueue writes the state; "droped" is Apache's spelling.
func (w *jsonWriter) processQueue(p *ProcessQueueInfo) {
	w.open('{')
	w.int("cachedMsgCount", int64(p.CachedCount))
	w.int("cachedMsgMaxOffset", p.CachedMaxOffset)
	w.int("cachedMsgMinOffset", p.CachedMinOffset)
	w.int("cachedMsgSizeInMiB", int64(p.CachedMiB))
	w.int("commitOffset", p.CommitOffset)
	w.bool("droped", p.Dropped)
	w.int("lastConsumeTimestamp", p.LastConsumeTime)
	w.int("lastLockTimestamp", p.LastLockTime)
	w.int("lastPullTimestamp", p.LastPullTime)
	w.bool("locked", p.Locked)
	w.int("transactionMsgCount", int64(p.TransactionCount))
	w.int("transactionMsgMaxOffset", p.TransactionMax)
	w.int("transactionMsgMinOffset", p.TransactionMin)
	w.int("tryUnlockTimes", p.TryUnlockTimes)
	w.close('}')
}

// DecodeRunningInfo reads the body. A queue that is only a reference to another
// place of the document, as Java may write it, is left out.
func DecodeRunningInfo(b []byte) (RunningInfo, error) {
	r := jsonReader{b: b}
	d := RunningInfo{Queues: map[MessageQueue]ProcessQueueInfo{}, Status: map[string]ConsumeStatus{}}
	r.object(func(k jsonKey) {
		switch string(k.text) {
		case "jstack":
			d.Stack = r.text()
		case "mqTable":
			r.object(func(k jsonKey) {
				if q, ok := k.queue(&r); ok {
					d.Queues[q] = r.processQueue()
				}
			})
		case "properties":
			d.Properties = r.textMap()
		case "statusTable":
			r.object(func(k jsonKey) {
				topic := string(k.text)
				d.Status[topic] = r.consumeStatus()
			})
		case "subscriptionSet":
			d.Subscriptions = r.subscriptions()
		case "userConsumerInfo":
			d.UserInfo = r.textMap()
		}
	})
	return d, r.finish("running info")
}

func (r *jsonReader) processQueue() (p ProcessQueueInfo) {
	r.object(func(k jsonKey) {
		switch string(k.text) {
		case "cachedMsgCount":
			p.CachedCount = r.int32()
		case "cachedMsgMaxOffset":
			p.CachedMaxOffset = r.int64()
		case "cachedMsgMinOffset":
			p.CachedMinOffset = r.int64()
		case "cachedMsgSizeInMiB":
			p.CachedMiB = r.int32()
		case "commitOffset":
			p.CommitOffset = r.int64()
		case "droped", "dropped": // the latter of the official Go client
			p.Dropped = r.bool()
		case "lastConsumeTimestamp":
			p.LastConsumeTime = r.int64()
		case "lastLockTimestamp":
			p.LastLockTime = r.int64()
		case "lastPullTimestamp":
			p.LastPullTime = r.int64()
		case "locked":
			p.Locked = r.bool()
		case "transactionMsgCount":
			p.TransactionCount = r.int32()
		case "transactionMsgMaxOffset":
			p.TransactionMax = r.int64()
		case "transactionMsgMinOffset":
			p.TransactionMin = r.int64()
		case "tryUnlockTimes":
			p.TryUnlockTimes = r.int64()
		}
	})
	return p
}

func (r *jsonReader) consumeStatus() (s ConsumeStatus) {
	r.object(func(k jsonKey) {
		switch string(k.text) {
		case "consumeFailedMsgs":
			s.FailedCount = r.int64()
		case "consumeFailedTPS":
			s.FailedTPS = r.float()
		case "consumeOKTPS":
			s.OKTPS = r.float()
		case "consumeRT":
			s.ConsumeRT = r.float()
		case "pullRT":
			s.PullRT = r.float()
		case "pullTPS":
			s.PullTPS = r.float()
		}
	})
	return s
}

// Values of ConsumeDirectlyResult.Result, as CMResult numbers them.
const (
	ResultSuccess    = "CR_SUCCESS"
	ResultLater      = "CR_LATER"
	ResultRollback   = "CR_ROLLBACK"
	ResultCommit     = "CR_COMMIT"
	ResultException  = "CR_THROW_EXCEPTION"
	ResultReturnNull = "CR_RETURN_NULL"
)

// ConsumeDirectlyResult is the body of CONSUME_MESSAGE_DIRECTLY (309). A broker
// passes it on untouched.
type ConsumeDirectlyResult struct {
	Order       bool
	AutoCommit  bool
	Result      string // Result...
	Remark      string
	SpentMillis int64
}

// AppendJSON appends the body; "spentTimeMills" is Apache's spelling.
func (d *ConsumeDirectlyResult) AppendJSON(dst []byte) []byte {
	w := jsonWriter{b: dst}
	w.open('{')
	w.bool("autoCommit", d.AutoCommit)
	w.optText("consumeResult", d.Result)
	w.bool("order", d.Order)
	w.optText("remark", d.Remark)
	w.int("spentTimeMills", d.SpentMillis)
	w.close('}')
	return w.b
}

// DecodeConsumeDirectlyResult reads the body. The official Go client writes the
// result as a number.
func DecodeConsumeDirectlyResult(b []byte) (ConsumeDirectlyResult, error) {
	r := jsonReader{b: b}
	var d ConsumeDirectlyResult
	r.object(func(k jsonKey) {
		switch string(k.text) {
		case "order":
			d.Order = r.bool()
		case "autoCommit":
			d.AutoCommit = r.bool()
		case "consumeResult":
			d.Result = resultName(r.text())
		case "remark":
			d.Remark = r.text()
		case "spentTimeMills":
			d.SpentMillis = r.int64()
		}
	})
	return d, r.finish("consume result")
}

func resultName(s string) string {
	names := [...]string{ResultSuccess, ResultLater, ResultRollback, ResultCommit, ResultException, ResultReturnNull}
	if n, err := strconv.Atoi(s); err == nil && n >= 0 && n < len(names) {
		return names[n]
	}
	return s
}
