package broker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestIntervalsMustMakeSense(t *testing.T) {
	c := DefaultConfig()
	known, err := c.Set("cleanResourceInterval", "250")
	require.True(t, known)
	require.NoError(t, err)
	require.Equal(t, 250*time.Millisecond, c.Store.CleanInterval)
	for _, bad := range []string{"-1", "9223372036854775807", "soon", ""} {
		_, err := c.Set("cleanResourceInterval", bad)
		require.Error(t, err, bad)
	}
	require.Equal(t, 250*time.Millisecond, c.Store.CleanInterval, "a bad value changes nothing")
}

func TestMemoryRatio(t *testing.T) {
	c := DefaultConfig()
	_, err := c.Set("accessMessageInMemoryMaxRatio", "101")
	require.Error(t, err)
	_, err = c.Set("accessMessageInMemoryMaxRatio", "10")
	require.NoError(t, err)
	require.Equal(t, 10, c.Store.MemoryPercent)
}
