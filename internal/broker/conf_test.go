package broker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestIntervalsMustMakeSense(t *testing.T) {
	c := DefaultConfig()
	require.NoError(t, c.Set("cleanResourceInterval", "250"))
	require.Equal(t, 250*time.Millisecond, c.Store.CleanInterval)
	for _, bad := range []string{"-1", "9223372036854775807", "soon", ""} {
		require.Error(t, c.Set("cleanResourceInterval", bad), bad)
	}
	require.Equal(t, 250*time.Millisecond, c.Store.CleanInterval, "a bad value changes nothing")
}
