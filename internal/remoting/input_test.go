package remoting

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

// readConn is a connection that can only be read from.
type readConn struct {
	net.Conn
	io.Reader
}

func (c readConn) Read(b []byte) (int, error) { return c.Reader.Read(b) }

func frameOf(opaque int32, body []byte) []byte {
	c := wire.Command{Code: codeEcho, Body: body}
	return c.Append(nil, wire.Head{Opaque: opaque, Encoding: wire.Binary})
}

func TestInputCutsFrames(t *testing.T) {
	sizes := []int{0, 1, 100, 20_000, 300_000, 3, 2_000_000, 5, 40_000}
	var stream []byte
	for i, n := range sizes {
		stream = append(stream, frameOf(int32(i), bytes.Repeat([]byte{byte(i)}, n))...)
	}
	readers := map[string]func(io.Reader) io.Reader{
		"whole":  func(r io.Reader) io.Reader { return r },
		"halves": iotest.HalfReader,
		"eof":    iotest.DataErrReader,
	}
	for name, wrap := range readers {
		t.Run(name, func(t *testing.T) {
			in := input{max: 64 << 10}
			nc := readConn{Reader: wrap(bytes.NewReader(stream))}
			var f wire.Frame
			for i, n := range sizes {
				b, err := in.next(nc, 0, func() {})
				require.NoError(t, err)
				require.NoError(t, f.Decode(b))
				require.EqualValues(t, i, f.Opaque)
				require.Equal(t, bytes.Repeat([]byte{byte(i)}, n), append([]byte{}, f.Body...))
			}
			_, err := in.next(nc, 0, func() {})
			assert.Equal(t, io.EOF, err)
			assert.LessOrEqual(t, len(in.buf), 64<<10, "memory of the large frame is given back")
		})
	}
}

func TestInputByteByByte(t *testing.T) {
	var stream []byte
	for i := range 50 {
		stream = append(stream, frameOf(int32(i), make([]byte, i*40))...)
	}
	in := input{max: firstBuffer}
	nc := readConn{Reader: iotest.OneByteReader(bytes.NewReader(stream))}
	var f wire.Frame
	for i := range 50 {
		b, err := in.next(nc, 0, func() {})
		require.NoError(t, err)
		require.NoError(t, f.Decode(b))
		require.EqualValues(t, i, f.Opaque)
		require.Len(t, f.Body, i*40)
	}
}

// An idle connection keeps the small buffer, a busy one gets the large one.
func TestInputGrowsWithTraffic(t *testing.T) {
	in := input{max: DefaultReadBuffer}
	next := func(stream []byte, frames int) {
		nc := readConn{Reader: bytes.NewReader(stream)}
		for range frames {
			_, err := in.next(nc, 0, func() {})
			require.NoError(t, err)
		}
	}
	one := frameOf(1, make([]byte, 1000))
	next(one, 1)
	assert.Len(t, in.buf, firstBuffer)
	next(bytes.Repeat(one, 2000), 2000)
	assert.Len(t, in.buf, DefaultReadBuffer)
}

func TestInputNamesWhatIsMissing(t *testing.T) {
	in := input{max: firstBuffer}
	_, err := in.next(readConn{Reader: bytes.NewReader(frameOf(1, []byte("abc"))[:20])}, 0, func() {})
	assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
	assert.ErrorContains(t, err, "20 bytes of an incomplete frame")
}

func FuzzInput(f *testing.F) {
	f.Add(frameOf(1, []byte("body")), uint8(3))
	f.Add(append(frameOf(1, nil), frameOf(2, make([]byte, 100))...), uint8(1))
	f.Add([]byte{0xFF, 0xFF, 0xFF, 0xFF}, uint8(4))
	f.Add([]byte{0x7F, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0}, uint8(8))
	f.Add([]byte("HTTP/1.1 400 Bad Request\r\n"), uint8(0))
	f.Add([]byte{0, 0, 0, 8, 0, 0, 0, 200, 1, 2, 3, 4}, uint8(2))
	f.Fuzz(func(t *testing.T, stream []byte, step uint8) {
		const limit = 1 << 20
		in := input{max: firstBuffer}
		nc := readConn{Reader: &steps{stream, int(step)}}
		used := 0
		for {
			b, err := in.next(nc, limit, func() {})
			if err != nil {
				break
			}
			if n := int(binary.BigEndian.Uint32(b)) + 4; n != len(b) || !bytes.Equal(b, stream[used:used+n]) {
				t.Fatalf("frame at %d is not what was sent", used)
			}
			used += len(b)
		}
		if len(in.buf) > max(firstBuffer, 2*len(stream)) {
			t.Fatalf("%d bytes of memory for %d bytes of input", len(in.buf), len(stream))
		}
	})
}

// steps reads n bytes at a time.
type steps struct {
	b []byte
	n int
}

func (s *steps) Read(p []byte) (int, error) {
	if len(s.b) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), s.n+1)], s.b)
	s.b = s.b[n:]
	return n, nil
}
