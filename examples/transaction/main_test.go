package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/examples/internal/demo"
	"github.com/gorocketmq/rocketmq/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

func TestExample(t *testing.T) {
	var out, diag bytes.Buffer
	require.Zero(t, demo.Run(t.Context(), nil, &out, &diag, example), &diag)
	require.Contains(t, out.String(), "delivered: 30 EUR to Dee")
	require.Contains(t, out.String(), "rolled back: ")
}
