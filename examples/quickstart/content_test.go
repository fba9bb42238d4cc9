package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBodyOfEverySizeIsRecognised(t *testing.T) {
	var scratch []byte
	for size := minBody; size < minBody+40; size++ {
		b := appendBody([]byte("x"), 7, 3, size)[1:]
		require.Len(t, b, size)
		seq, s, err := checkBody(scratch, b, 7, 4, size)
		require.NoError(t, err)
		require.Equal(t, 3, seq)
		scratch = s
	}
}

func TestEveryAlteredByteIsNoticed(t *testing.T) {
	const size = 64
	b := appendBody(nil, 7, 3, size)
	for i := range b {
		b[i] ^= 1
		_, _, err := checkBody(nil, b, 7, 1<<30, size)
		if i < 8 {
			require.ErrorIs(t, err, errForeign)
		} else {
			require.ErrorIs(t, err, errAltered)
		}
		b[i] ^= 1
	}
	_, _, err := checkBody(nil, b[:size-1], 7, 4, size)
	require.ErrorIs(t, err, errAltered, "cut")
	_, _, err = checkBody(nil, b, 7, 3, size)
	require.ErrorIs(t, err, errAltered, "a number that was never sent")
	_, _, err = checkBody(nil, nil, 7, 3, size)
	require.ErrorIs(t, err, errForeign)
}

func TestBodiesDiffer(t *testing.T) {
	seen := map[string]bool{}
	for run := range uint64(4) {
		for seq := range uint64(100) {
			seen[string(appendBody(nil, run, seq, 48)[bodyHead:])] = true
		}
	}
	require.Len(t, seen, 400)
}
