package testbroker

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

// TestStream cuts frames at random places and changes between passing on and
// looking at random moments: all bytes come out, in order, and what is looked
// at is whole frames.
func TestStream(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var sent []byte
		var ends []int
		for i := range rapid.IntRange(1, 8).Draw(t, "frames") {
			cmd := wire.Command{Code: 10, Body: make([]byte, rapid.IntRange(0, 100).Draw(t, "body"))}
			sent = cmd.Append(sent, wire.Head{Opaque: int32(i)})
			ends = append(ends, len(sent))
		}
		garbage := rapid.Bool().Draw(t, "garbage")
		if garbage {
			sent = append(sent, "HTTP/1.1 400 Bad Request\r\n\r\n"...)
		}
		var s stream
		var got []byte
		for rest := sent; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "read")
			b := rest[:n]
			rest = rest[n:]
			if len(s.begun) == 0 && rapid.Bool().Draw(t, "skip") {
				s.skip(b)
				got = append(got, b...)
				continue
			}
			got = append(got, s.add(b)...)
			for {
				frame, ok := s.next()
				if frame == nil {
					break
				}
				if ok {
					size, err := wire.FrameSize(frame, 0)
					if err != nil || size != len(frame) {
						t.Fatal("not a frame", frame, err)
					}
				}
				got = append(got, frame...)
			}
		}
		if !bytes.Equal(sent, append(got, s.begun...)) {
			t.Fatalf("sent %q, got %q", sent, got)
		}
		if !garbage && (s.mid() || s.foreign || len(s.begun) > 0) {
			t.Fatal("something is left", fmt.Sprint(ends))
		}
	})
}

func TestStreamPassesWhatIsNoFrame(t *testing.T) {
	var s stream
	require.Empty(t, s.add([]byte("HTT")))
	frame, ok := s.next()
	require.Nil(t, frame)
	require.True(t, ok)
	require.Empty(t, s.add([]byte("P/1.1")))
	frame, ok = s.next()
	require.Equal(t, "HTTP/1.1", string(frame))
	require.False(t, ok)
	require.Equal(t, " 200", string(s.add([]byte(" 200"))))
	s.skip([]byte("and so on"))
	require.False(t, s.mid())
}
