package demo

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRun(t *testing.T) {
	var out, diag bytes.Buffer
	require.Equal(t, 0, Run(t.Context(), nil, &out, &diag, func(ctx context.Context, e *Env) (err error) {
		topic, err := e.Topic(ctx, "T", 2)
		if err != nil {
			return err
		}
		cl, err := e.Client()
		if err != nil {
			return err
		}
		Close(ctx, &err, cl)
		e.Say("topic %s", topic[:2])
		return err
	}), &diag)
	require.Equal(t, "topic T-\n", out.String())
}

func TestRunFails(t *testing.T) {
	var out, diag bytes.Buffer
	boom := func(context.Context, *Env) error { return errors.New("boom") }
	require.Equal(t, 1, Run(t.Context(), nil, &out, &diag, boom))
	require.Contains(t, diag.String(), "boom")
	require.Equal(t, 2, Run(t.Context(), []string{"-x"}, &out, &diag, boom))
	require.Equal(t, 0, Run(t.Context(), []string{"-h"}, &out, &diag, boom))
}
