package broker

import (
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gorocketmq/rocketmq/internal/broker/store"
)

// setting ties one key of broker.conf to a field of Config.
type setting struct {
	key string
	get func(c *Config) string
	set func(c *Config, v string) error
}

// settings are the keys the broker understands, sorted. They are read by
// [Config.Set] and listed by GET_BROKER_CONFIG (26).
func settings() []setting {
	s := []setting{
		text("brokerName", func(c *Config) *string { return &c.Name }),
		text("brokerClusterName", func(c *Config) *string { return &c.Cluster }),
		number("brokerId", func(c *Config) *int64 { return &c.ID }),
		{"brokerIP1", func(c *Config) string { h, _, _ := net.SplitHostPort(c.AdvertiseAddr); return h }, setHost((*Config).advertise)},
		{"bindAddress", func(c *Config) string { h, _, _ := net.SplitHostPort(c.Listen); return h }, setHost((*Config).listen)},
		{"listenPort", func(c *Config) string { _, p, _ := net.SplitHostPort(c.Listen); return p }, setPort},
		{"namesrvAddr", func(c *Config) string { return strings.Join(c.NameServers, ";") }, func(c *Config, v string) error {
			c.NameServers = strings.FieldsFunc(v, func(r rune) bool { return r == ';' || r == ',' || r == ' ' })
			return nil
		}},
		boolean("autoCreateTopicEnable", func(c *Config) *bool { return &c.AutoCreateTopic }),
		boolean("autoCreateSubscriptionGroup", func(c *Config) *bool { return &c.AutoCreateGroup }),
		boolean("clusterTopicEnable", func(c *Config) *bool { return &c.ClusterTopic }),
		boolean("brokerTopicEnable", func(c *Config) *bool { return &c.BrokerTopic }),
		boolean("traceTopicEnable", func(c *Config) *bool { return &c.TraceTopic }),
		boolean("traceOn", func(c *Config) *bool { return &c.TraceOn }),
		boolean("longPollingEnable", func(c *Config) *bool { return &c.LongPolling }),
		boolean("enablePropertyFilter", func(c *Config) *bool { return &c.PropertyFilter }),
		boolean("notifyConsumerIdsChangedEnable", func(c *Config) *bool { return &c.NotifyChanges }),
		boolean("storeReplyMessageEnable", func(c *Config) *bool { return &c.StoreReplies }),
		boolean("enableRetryTopicV2", func(c *Config) *bool { return &c.RetryTopicV2 }),
		boolean("slaveReadEnable", func(c *Config) *bool { return &c.SlaveRead }),
		boolean("useServerSideResetOffset", func(c *Config) *bool { return &c.ServerSideReset }),
		number("defaultTopicQueueNums", func(c *Config) *int32 { return &c.DefaultTopicQueues }),
		number("brokerPermission", func(c *Config) *int32 { return &c.Permission }),
		text("regionId", func(c *Config) *string { return &c.Region }),
		{"startAcceptSendRequestTimeStamp", func(c *Config) string {
			if c.AcceptSendFrom.IsZero() {
				return "0"
			}
			return strconv.FormatInt(c.AcceptSendFrom.UnixMilli(), 10)
		}, func(c *Config, v string) error {
			ms, err := strconv.ParseInt(v, 10, 64)
			if ms > 0 {
				c.AcceptSendFrom = time.UnixMilli(ms)
			}
			return err
		}},
		millis("registerNameServerPeriod", func(c *Config) *time.Duration { return &c.RegisterEvery }),
		millis("registerBrokerTimeoutMills", func(c *Config) *time.Duration { return &c.RegisterTimeout }),
		millis("channelExpiredTimeout", func(c *Config) *time.Duration { return &c.ClientExpiry }),
		millis("flushConsumerOffsetInterval", func(c *Config) *time.Duration { return &c.OffsetFlushEvery }),
		millis("flushDelayOffsetInterval", func(c *Config) *time.Duration { return &c.DelayFlushEvery }),
		boolean("rejectTransactionMessage", func(c *Config) *bool { return &c.RejectTransactions }),
		millis("transactionTimeOut", func(c *Config) *time.Duration { return &c.TransactionTimeout }),
		millis("transactionCheckInterval", func(c *Config) *time.Duration { return &c.TransactionCheckEvery }),
		number("transactionCheckMax", func(c *Config) *int32 { return &c.TransactionCheckMax }),
		millis("transactionOpBatchInterval", func(c *Config) *time.Duration { return &c.TransactionOpEvery }),
		number("transactionOpMsgMaxSize", func(c *Config) *int { return &c.TransactionOpBytes }),
		inverted("timerWheelEnable", func(c *Config) *bool { return &c.NoTimers }),
		millis("timerPrecisionMs", func(c *Config) *time.Duration { return &c.TimerPrecision }),
		seconds("timerMaxDelaySec", func(c *Config) *time.Duration { return &c.TimerMaxDelay }),
		number("timerRollWindowSlot", func(c *Config) *int32 { return &c.TimerRollSlots }),
		millis("timerFlushIntervalMs", func(c *Config) *time.Duration { return &c.TimerFlushEvery }),
		number("mappedFileSizeTimerLog", func(c *Config) *int64 { return &c.TimerLogFileSize }),
		boolean("recallMessageEnable", func(c *Config) *bool { return &c.Recall }),
		millis("shortPollingTimeMills", func(c *Config) *time.Duration { return &c.ShortPolling }),
		{"serverChannelMaxIdleTimeSeconds", func(c *Config) string { return strconv.Itoa(int(c.IdleTimeout / time.Second)) }, func(c *Config, v string) error {
			n, err := strconv.Atoi(v)
			c.IdleTimeout = time.Duration(n) * time.Second
			return err
		}},
		text("storePathRootDir", func(c *Config) *string { return &c.Store.Dir }),
		number("mappedFileSizeCommitLog", func(c *Config) *int64 { return &c.Store.CommitLogFileSize }),
		number("mappedFileSizeConsumeQueue", func(c *Config) *int64 { return &c.Store.ConsumeQueueFileSize }),
		number("maxHashSlotNum", func(c *Config) *int32 { return &c.Store.IndexSlots }),
		number("maxIndexNum", func(c *Config) *int32 { return &c.Store.IndexEntries }),
		number("maxMsgsNumBatch", func(c *Config) *int32 { return &c.Store.MaxQuery }),
		inverted("messageIndexEnable", func(c *Config) *bool { return &c.Store.NoIndex }),
		{"messageDelayLevel", func(c *Config) string { return store.FormatDelayLevels(c.Store.DelayLevels) }, func(c *Config, v string) (err error) {
			c.Store.DelayLevels, err = store.ParseDelayLevels(v)
			return err
		}},
		number("maxMessageSize", func(c *Config) *int { return &c.Store.MaxMessageSize }),
		{"flushDiskType", func(c *Config) string {
			if c.Store.SyncFlush {
				return "SYNC_FLUSH"
			}
			return "ASYNC_FLUSH"
		}, func(c *Config, v string) error {
			c.Store.SyncFlush = strings.EqualFold(v, "SYNC_FLUSH")
			if !c.Store.SyncFlush && !strings.EqualFold(v, "ASYNC_FLUSH") {
				return errors.New("SYNC_FLUSH or ASYNC_FLUSH is needed")
			}
			return nil
		}},
		millis("syncFlushTimeout", func(c *Config) *time.Duration { return &c.Store.SyncFlushTimeout }),
		millis("flushIntervalCommitLog", func(c *Config) *time.Duration { return &c.Store.FlushInterval }),
		number("flushCommitLogLeastPages", func(c *Config) *int { return &c.Store.FlushLeastPages }),
		millis("flushCommitLogThoroughInterval", func(c *Config) *time.Duration { return &c.Store.FlushThorough }),
		millis("flushIntervalConsumeQueue", func(c *Config) *time.Duration { return &c.Store.QueueFlushInterval }),
		number("flushConsumeQueueLeastPages", func(c *Config) *int { return &c.Store.QueueFlushLeastPages }),
		millis("flushConsumeQueueThoroughInterval", func(c *Config) *time.Duration { return &c.Store.QueueFlushThorough }),
		{"deleteWhen", func(c *Config) string { return formatHours(c.Store.DeleteHours) }, setHours},
		{"fileReservedTime", func(c *Config) string { return strconv.Itoa(int(c.Store.FileReserved / time.Hour)) }, func(c *Config, v string) error {
			n, err := strconv.Atoi(v)
			if err == nil && (n < 1 || n > maxReservedHours) {
				err = fmt.Errorf("1 to %d hours", maxReservedHours)
			}
			c.Store.FileReserved = time.Duration(n) * time.Hour
			return err
		}},
		millis("cleanResourceInterval", func(c *Config) *time.Duration { return &c.Store.CleanInterval }),
		number("deleteFileBatchMax", func(c *Config) *int { return &c.Store.DeleteBatch }),
		millis("deleteCommitLogFilesInterval", func(c *Config) *time.Duration { return &c.Store.DeleteInterval }),
		millis("deleteConsumeQueueFilesInterval", func(c *Config) *time.Duration { return &c.Store.DeleteQueueInterval }),
		millis("destroyMapedFileIntervalForcibly", func(c *Config) *time.Duration { return &c.Store.DeleteRetry }),
		percent("accessMessageInMemoryMaxRatio", func(c *Config) *int { return &c.Store.MemoryPercent }),
		percent("diskMaxUsedSpaceRatio", func(c *Config) *int { return &c.Store.DiskMaxPercent }),
		percent("diskSpaceCleanForciblyRatio", func(c *Config) *int { return &c.Store.DiskCleanPercent }),
		percent("diskSpaceWarningLevelRatio", func(c *Config) *int { return &c.Store.DiskFullPercent }),
		inverted("cleanFileForciblyEnable", func(c *Config) *bool { return &c.Store.NoForcedClean }),
		number("maxTransferBytesOnMessageInMemory", func(c *Config) *int { return &c.Store.MemoryTransferBytes }),
		number("maxTransferCountOnMessageInMemory", func(c *Config) *int { return &c.Store.MemoryTransferCount }),
		number("maxTransferBytesOnMessageInDisk", func(c *Config) *int { return &c.Store.DiskTransferBytes }),
		number("maxTransferCountOnMessageInDisk", func(c *Config) *int { return &c.Store.DiskTransferCount }),
		number("maxFilterMessageSize", func(c *Config) *int { return &c.Store.FilterBytes }),
	}
	slices.SortFunc(s, func(a, b setting) int { return strings.Compare(a.key, b.key) })
	return s
}

// Set sets one key of broker.conf. known is false for a key that this broker
// does not understand, which is no error: Apache ignores such keys, too.
func (c *Config) Set(key, value string) (known bool, err error) {
	all := settings()
	i, ok := slices.BinarySearchFunc(all, key, func(s setting, k string) int { return strings.Compare(s.key, k) })
	if !ok {
		return false, nil
	}
	if err := all[i].set(c, strings.TrimSpace(value)); err != nil {
		return true, fmt.Errorf("%s=%s: %w", key, value, err)
	}
	return true, nil
}

// Load reads a broker.conf: lines of key=value, # for comments. It returns the
// keys that this broker does not understand.
func (c *Config) Load(conf string) (unknown []string, err error) {
	n := 0
	for line := range strings.Lines(conf) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == '!' {
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok {
			return unknown, fmt.Errorf("line %d: %q is not key=value", n, line)
		}
		key = strings.TrimSpace(key)
		known, err := c.Set(key, value)
		if err != nil {
			return unknown, fmt.Errorf("line %d: %w", n, err)
		}
		if !known {
			unknown = append(unknown, key)
		}
	}
	return unknown, nil
}

// properties is the configuration as GET_BROKER_CONFIG answers it.
func (c *Config) properties() []byte {
	var b []byte
	for _, s := range settings() {
		b = append(append(append(append(b, s.key...), '='), s.get(c)...), '\n')
	}
	return b
}

func text(key string, field func(*Config) *string) setting {
	return setting{key, func(c *Config) string { return *field(c) }, func(c *Config, v string) error {
		*field(c) = v
		return nil
	}}
}

func boolean(key string, field func(*Config) *bool) setting {
	return setting{key, func(c *Config) string { return strconv.FormatBool(*field(c)) }, func(c *Config, v string) error {
		on := strings.EqualFold(v, "true")
		if !on && !strings.EqualFold(v, "false") {
			return errors.New("true or false is needed") // Apache would read a slip as false
		}
		*field(c) = on
		return nil
	}}
}

// inverted is a key that switches off what its field switches on: a field's
// zero value must be the default.
func inverted(key string, field func(*Config) *bool) setting {
	b := boolean(key, field)
	return setting{key, func(c *Config) string { return strconv.FormatBool(!*field(c)) }, func(c *Config, v string) error {
		if err := b.set(c, v); err != nil {
			return err
		}
		*field(c) = !*field(c)
		return nil
	}}
}

func number[T int | int32 | int64](key string, field func(*Config) *T) setting {
	return setting{key, func(c *Config) string { return strconv.FormatInt(int64(*field(c)), 10) }, func(c *Config, v string) error {
		n, err := strconv.ParseInt(v, 10, 64)
		if err == nil && int64(T(n)) != n {
			err = strconv.ErrRange
		}
		*field(c) = T(n)
		return err
	}}
}

// maxReservedHours is more than a life and still a time.Duration.
const maxReservedHours = 1_000_000

// percent is a share of a disk. Apache silently takes its own limits for values
// outside of them (10 to 95, 30 to 85, 35 to 90).
func percent(key string, field func(*Config) *int) setting {
	s := number(key, field)
	set := s.set
	s.set = func(c *Config, v string) error {
		if err := set(c, v); err != nil {
			return err
		}
		if n := *field(c); n < 1 || n > 100 {
			return errors.New("1 to 100 percent; 100 switches it off")
		}
		return nil
	}
	return s
}

// setHours reads deleteWhen: hours of the day with semicolons between.
func setHours(c *Config, v string) error {
	var hours []int
	for part := range strings.SplitSeq(v, ";") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 || n > 23 {
			return errors.New("hours of the day from 00 to 23 are needed, with ; between")
		}
		hours = append(hours, n)
	}
	if hours == nil {
		return errors.New("at least one hour of the day is needed")
	}
	c.Store.DeleteHours = hours
	return nil
}

func formatHours(hours []int) string {
	var b []byte
	for i, h := range hours {
		if i > 0 {
			b = append(b, ';')
		}
		b = fmt.Appendf(b, "%02d", h)
	}
	return string(b)
}

func millis(key string, field func(*Config) *time.Duration) setting {
	return setting{key, func(c *Config) string { return strconv.FormatInt(field(c).Milliseconds(), 10) }, func(c *Config, v string) error {
		n, err := strconv.ParseInt(v, 10, 64)
		if err == nil && (n < 0 || n > int64(math.MaxInt64/time.Millisecond)) {
			err = errors.New("milliseconds cannot be negative or beyond 292 years")
		}
		if err == nil {
			*field(c) = time.Duration(n) * time.Millisecond
		}
		return err
	}}
}

func seconds(key string, field func(*Config) *time.Duration) setting {
	return setting{key, func(c *Config) string { return strconv.FormatInt(int64(*field(c)/time.Second), 10) }, func(c *Config, v string) error {
		n, err := strconv.ParseInt(v, 10, 64)
		if err == nil && (n < 0 || n > int64(math.MaxInt64/time.Second)) {
			err = errors.New("seconds cannot be negative or beyond 292 years")
		}
		if err == nil {
			*field(c) = time.Duration(n) * time.Second
		}
		return err
	}}
}

// listen and advertise are the addresses that bindAddress, listenPort and
// brokerIP1 make up together, in any order.
func (c *Config) listen(host, port string) {
	h, p, _ := net.SplitHostPort(c.Listen)
	def(&host, h)
	def(&port, p)
	c.Listen = net.JoinHostPort(host, port)
}

func (c *Config) advertise(host, port string) {
	h, p, _ := net.SplitHostPort(c.AdvertiseAddr)
	if p == "" {
		_, p, _ = net.SplitHostPort(c.Listen)
	}
	def(&host, h)
	def(&port, p)
	if host != "" {
		c.AdvertiseAddr = net.JoinHostPort(host, port)
	}
}

func setHost(apply func(c *Config, host, port string)) func(*Config, string) error {
	return func(c *Config, v string) error {
		apply(c, v, "")
		return nil
	}
}

func setPort(c *Config, v string) error {
	if n, err := strconv.Atoi(v); err != nil || n < 0 || n > 65535 {
		return fmt.Errorf("not a port")
	}
	c.listen("", v)
	c.advertise("", v)
	return nil
}
