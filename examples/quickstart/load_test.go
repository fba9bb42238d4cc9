package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestVerdict shows what makes a run fail: a report on three messages, with
// one thing changed.
func TestVerdict(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(ta *tally)
		ok     bool
		want   string
	}{
		{"all well", func(*tally) {}, true, "sent 3, received 3, missing 0, duplicates 0"},
		{"duplicate", func(ta *tally) { ta.received(1) }, true, "sent 3, received 3, missing 0, duplicates 1"},
		{"missing", func(ta *tally) { ta.messages[1].deliveries.Store(0); ta.arrived.Add(-1) }, false, "sent 3, received 2, missing 1, duplicates 0"},
		{"altered", func(ta *tally) { ta.altered.Add(1) }, false, "sent 3, received 3, missing 0, duplicates 0"},
		{"not sent", func(ta *tally) { ta.messages[1].sendTook = 0; ta.sent.Add(-1) }, false, "sent 2, received 3, missing 0, duplicates 0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := &load{settings: &settings{n: 3, size: 20}, first: newOnce(), tally: newTally(3), sendBegan: time.Now()}
			for seq := range 3 {
				l.tally.sending(seq)
				l.tally.acknowledged(seq)
				l.tally.received(seq)
			}
			tc.change(l.tally)
			var out bytes.Buffer
			require.Equal(t, tc.ok, l.report(&out))
			require.Equal(t, tc.want, lastLine(out.String()))
			require.Equal(t, tc.name == "altered", bytes.Contains(out.Bytes(), []byte("altered    1")))
		})
	}
}
