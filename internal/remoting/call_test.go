package remoting

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

func TestCallEchoes(t *testing.T) {
	for _, enc := range []wire.Encoding{wire.JSON, wire.Binary} {
		_, addr := serveTCP(t, ServerConfig{Config: Config{Handler: echo}})
		p := newPool(t, PoolConfig{Config: Config{Encoding: enc}})
		f, err := p.Call(t.Context(), addr, &wire.Command{Code: codeEcho, Body: []byte("hello")})
		require.NoError(t, err)
		require.Equal(t, "hello", string(f.Body))
		require.Equal(t, enc, f.Encoding)
	}
}
