package send

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

// Codec is a way to compress bodies.
type Codec uint8

// The codecs.
const (
	NoCodec Codec = iota
	ZLIB
	LZ4
	ZSTD
)

// Compression says which bodies are compressed, and how.
type Compression struct {
	Codec     Codec
	Level     int
	Threshold int // bodies of so many bytes and more are compressed
}

// Check reports what is wrong with c.
func (c Compression) Check() error {
	first, last := 1, 9
	switch c.Codec {
	case NoCodec:
		return nil
	case ZLIB:
	case LZ4:
		first = 0
	case ZSTD:
		last = 22
	default:
		return fmt.Errorf("there is no codec %d", c.Codec)
	}
	if c.Level < first || c.Level > last {
		return fmt.Errorf("level %d is outside of %d to %d", c.Level, first, last)
	}
	if c.Threshold < 0 {
		return fmt.Errorf("threshold of %d bytes is negative", c.Threshold)
	}
	return nil
}

// packer compresses bodies. Its writers are kept for reuse: making one costs
// more than most bodies.
type packer struct {
	threshold int
	sysFlag   int32
	writers   sync.Pool // writer
}

type writer interface {
	io.WriteCloser
	Reset(w io.Writer)
}

func (p *packer) init(c Compression) {
	p.threshold = max(1, c.Threshold)
	switch c.Codec {
	case ZLIB:
		p.sysFlag = wire.SysCompressed | wire.SysCompressionZLIB
		p.writers.New = func() any {
			w, err := zlib.NewWriterLevel(nil, c.Level)
			return orNone(w, err)
		}
	case LZ4:
		p.sysFlag = wire.SysCompressed | wire.SysCompressionLZ4
		level := lz4.Fast
		if c.Level > 0 {
			level = lz4.Level1 << (c.Level - 1)
		}
		p.writers.New = func() any {
			w := lz4.NewWriter(nil)
			return orNone(w, w.Apply(lz4.CompressionLevelOption(level)))
		}
	case ZSTD:
		p.sysFlag = wire.SysCompressed | wire.SysCompressionZSTD
		p.writers.New = func() any {
			// One at a time and no goroutines of its own.
			w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.EncoderLevelFromZstd(c.Level)), zstd.WithEncoderConcurrency(1))
			return orNone(w, err)
		}
	default:
		p.threshold = int(^uint(0) >> 1)
	}
}

// orNone is nil for a writer that cannot be made. Check has seen the level, so
// that does not happen; bodies would go as they are.
func orNone(w writer, err error) any {
	if err != nil {
		return nil
	}
	return w
}

// pack appends the compressed body to dst. ok is false if that does not make
// it shorter.
func (p *packer) pack(dst, body []byte) (out []byte, ok bool) {
	w, _ := p.writers.Get().(writer)
	if w == nil {
		return dst, false
	}
	defer p.writers.Put(w)
	buf := bytes.NewBuffer(dst)
	w.Reset(buf)
	_, err := w.Write(body)
	if cerr := w.Close(); err == nil {
		err = cerr
	}
	out = buf.Bytes()
	return out, err == nil && len(out)-len(dst) < len(body)
}
