package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrBatch is wrapped by every error about a batch that cannot be read.
var ErrBatch = errors.New("malformed message batch")

// batchHead is the fixed part of an item up to its body: size 4, magic 4 and
// body crc 4 (both 0), flag 4, body length 4.
const batchHead = 20

// BatchItemSize is how many bytes [AppendBatchItem] appends.
func BatchItemSize(body int, props int) int { return batchHead + body + 2 + props }

// AppendBatchItem appends one message to the body of SEND_BATCH_MESSAGE (320).
// props must not exceed [MaxProperties].
func AppendBatchItem(dst []byte, flag int32, body []byte, props Properties) []byte {
	be := binary.BigEndian
	b := be.AppendUint32(dst, uint32(BatchItemSize(len(body), len(props))))
	b = append(b, 0, 0, 0, 0, 0, 0, 0, 0)
	b = be.AppendUint32(b, uint32(flag))
	b = be.AppendUint32(b, uint32(len(body)))
	b = append(b, body...)
	b = be.AppendUint16(b, uint16(len(props)))
	return append(b, props...)
}

// BatchItem is one message of a batch; its slices point into the batch.
type BatchItem struct {
	Flag       int32
	Body       []byte
	Properties Properties
}

// BatchIter goes through the messages of a batch.
type BatchIter struct{ rest []byte }

// Batch goes through the messages of b, the body of SEND_BATCH_MESSAGE (320) or
// of an inner batch.
func Batch(b []byte) BatchIter { return BatchIter{b} }

// Next is the next message; it is false at the end. After an error there is no
// next one.
func (it *BatchIter) Next() (BatchItem, bool, error) {
	if len(it.rest) == 0 {
		return BatchItem{}, false, nil
	}
	item, n, err := decodeBatchItem(it.rest)
	if err != nil {
		it.rest = nil
		return BatchItem{}, false, err
	}
	it.rest = it.rest[n:]
	return item, true, nil
}

func decodeBatchItem(b []byte) (item BatchItem, size int, err error) {
	if len(b) < batchHead {
		return item, 0, fmt.Errorf("%w: %d bytes are left, an item begins with %d", ErrBatch, len(b), batchHead)
	}
	size = int(int32(binary.BigEndian.Uint32(b)))
	if size < batchHead+2 || size > len(b) {
		return item, 0, fmt.Errorf("%w: item of %d bytes where %d are left", ErrBatch, size, len(b))
	}
	item.Flag = int32(binary.BigEndian.Uint32(b[12:]))
	var ok bool
	rest := b[16:size:size]
	if item.Body, rest, ok = cut32(rest); !ok {
		return item, 0, fmt.Errorf("%w: body is longer than its item", ErrBatch)
	}
	if item.Properties, rest, ok = cut16(rest); !ok || len(rest) > 0 {
		return item, 0, fmt.Errorf("%w: properties do not end with their item", ErrBatch)
	}
	return item, size, nil
}
