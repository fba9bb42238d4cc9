// Package inflate undoes the compression of message bodies: zlib, lz4 and zstd,
// as the bits of a message's sysFlag say.
package inflate

import (
	"bytes"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

// maxInflated is the largest body in bytes that a compressed one may become: a
// few bytes must not be able to fill the memory. It is sixteen times what
// clients send by default.
const maxInflated = 64 << 20

// Inflater undoes the compression of bodies. The zero value is ready, and safe
// for concurrent use. The readers are kept for reuse, since making one costs far
// more than a small body.
type Inflater struct {
	limit           int // of the content; 0 is maxInflated
	zlib, lz4, zstd sync.Pool
}

// Inflate returns the content of a body by the compression bits of its message:
// the body itself if it is not compressed. No bits for the type is zlib, as older
// clients have it. Content of more than 64 MiB is an error.
func (f *Inflater) Inflate(body []byte, sysFlag int32) ([]byte, error) {
	if sysFlag&wire.SysCompressed == 0 {
		return body, nil
	}
	limit := f.limit
	if limit == 0 {
		limit = maxInflated
	}
	src := bytes.NewReader(body)
	var r io.Reader
	switch kind := sysFlag & wire.SysCompressionMask; kind {
	case 0, wire.SysCompressionZLIB:
		z, _ := f.zlib.Get().(io.ReadCloser)
		var err error
		if z == nil {
			z, err = zlib.NewReader(src)
		} else {
			err = z.(zlib.Resetter).Reset(src, nil)
		}
		if err != nil {
			return nil, fmt.Errorf("zlib body of %d bytes: %w", len(body), err)
		}
		defer f.zlib.Put(z)
		r = z
	case wire.SysCompressionLZ4:
		z, _ := f.lz4.Get().(*lz4.Reader)
		if z == nil {
			z = lz4.NewReader(src)
		} else {
			z.Reset(src)
		}
		defer f.lz4.Put(z)
		r = z
	case wire.SysCompressionZSTD:
		z, _ := f.zstd.Get().(*zstd.Decoder)
		var err error
		if z == nil {
			// One at a time and no goroutines of its own; the window is bounded
			// like the output.
			z, err = zstd.NewReader(src, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(maxInflated))
		} else {
			err = z.Reset(src)
		}
		if err != nil {
			return nil, fmt.Errorf("zstd body of %d bytes: %w", len(body), err)
		}
		defer f.zstd.Put(z)
		r = z
	default:
		return nil, fmt.Errorf("body has the unknown compression type %#x", kind)
	}
	return readBounded(r, len(body), limit)
}

// readBounded reads all of r, or fails beyond limit.
func readBounded(r io.Reader, compressed, limit int) ([]byte, error) {
	var out bytes.Buffer
	out.Grow(min(4*compressed, limit) + bytes.MinRead)
	n, err := out.ReadFrom(io.LimitReader(r, int64(limit)+1))
	if err != nil {
		return nil, fmt.Errorf("compressed body of %d bytes: %w", compressed, err)
	}
	if n > int64(limit) {
		return nil, fmt.Errorf("compressed body of %d bytes: the content is larger than %d bytes", compressed, limit)
	}
	return out.Bytes(), nil
}
