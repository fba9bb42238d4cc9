package wire

// Bits of a message's sysFlag.
const (
	SysCompressed      int32 = 0x001
	SysMultiTags       int32 = 0x002
	SysTranPrepared    int32 = 0x004 // half message
	SysTranCommit      int32 = 0x008
	SysTranRollback    int32 = 0x00C
	SysTranMask        int32 = 0x00C // the two bits of the three above
	SysBornV6          int32 = 0x010 // BornHost has 16 bytes
	SysStoreV6         int32 = 0x020 // StoreHost has 16 bytes
	SysNeedUnwrap      int32 = 0x040 // the body is a batch that the consumer takes apart; 5.x
	SysInnerBatch      int32 = 0x080
	SysCompressionMask int32 = 0x700 // how the body is compressed; 0: zlib, of old clients
	SysCompressionLZ4  int32 = 0x100 // LZ4 frame format
	SysCompressionZSTD int32 = 0x200
	SysCompressionZLIB int32 = 0x300
)

// The two bits of a topic's sysFlag.
const (
	TopicUnit    int32 = 1
	TopicUnitSub int32 = 2
)

// Permission bits of topics and brokers.
const (
	PermInherit  int32 = 1 // topics may be created after its image
	PermWrite    int32 = 2
	PermRead     int32 = 4
	PermPriority int32 = 8
)
