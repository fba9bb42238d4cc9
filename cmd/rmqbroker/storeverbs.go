package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/gorocketmq/rocketmq/internal/broker/store/inspect"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// storeCheck is "store check".
func storeCheck(ctx context.Context, d *inspect.Dir, _ *storeFlags, stdout, _ io.Writer) (int, error) {
	out := bufio.NewWriter(stdout)
	sum, err := d.Check(ctx, func(f inspect.Finding) { fmt.Fprintln(out, findingLine(f)) })
	if err == nil {
		fmt.Fprintln(out, sum)
	}
	if err = errors.Join(err, out.Flush()); err != nil || sum.Problems > 0 {
		return exitFailure, err
	}
	return exitOK, nil
}

func findingLine(f inspect.Finding) string {
	if f.Damage {
		return "damage: " + f.String()
	}
	return "note: " + f.String()
}

// storeDump is "store dump".
func storeDump(ctx context.Context, d *inspect.Dir, f *storeFlags, stdout, stderr io.Writer) (int, error) {
	out := bufio.NewWriter(stdout)
	code := exitOK
	var line []byte
	_, err := d.Dump(ctx, f.sel, func(r *wire.Record) error {
		line = appendMessage(line[:0], r, f.body)
		_, err := out.Write(line)
		return err
	}, func(x inspect.Finding) {
		if x.Damage {
			code = exitFailure
		}
		fmt.Fprintln(stderr, findingLine(x))
	})
	if err = errors.Join(err, out.Flush()); err != nil {
		code = exitFailure
	}
	return code, err
}

// appendMessage is a message in one line of name=value. Values that are not
// plain are quoted as in Go. Bodies are as they are stored.
func appendMessage(b []byte, r *wire.Record, body int) []byte {
	number := func(name string, n int64) {
		b = strconv.AppendInt(append(append(b, name...), '='), n, 10)
		b = append(b, ' ')
	}
	text := func(name, v string) {
		b = append(append(b, name...), '=')
		if plain(v) {
			b = append(b, v...)
		} else {
			b = strconv.AppendQuote(b, v)
		}
		b = append(b, ' ')
	}
	number("queue", int64(r.QueueID))
	number("offset", r.QueueOffset)
	number("phy", r.PhyOffset)
	number("size", int64(r.Size))
	text("id", string(wire.AppendOffsetMsgID(nil, r.StoreHost, r.PhyOffset)))
	text("stored", stamp(r.StoreTime))
	text("born", stamp(r.BornTime))
	text("bornhost", r.BornHost.String())
	number("sysflag", int64(r.SysFlag))
	number("flag", int64(r.Flag))
	number("attempts", int64(r.ReconsumeTimes))
	r.Properties.Each(func(k, v []byte) bool {
		text("p."+string(k), string(v))
		return true
	})
	number("length", int64(len(r.Body)))
	if !r.CheckBody() {
		text("checksum", "wrong")
	}
	part := r.Body
	if body >= 0 {
		part = part[:min(body, len(part))]
	}
	b = strconv.AppendQuote(append(b, "body="...), string(part))
	if len(part) < len(r.Body) {
		b = append(b, "..."...)
	}
	return append(b, '\n')
}

func plain(s string) bool {
	for _, c := range []byte(s) {
		if c <= ' ' || c > '~' || c == '"' || c == '=' || c == '\\' {
			return false
		}
	}
	return s != ""
}

func stamp(ms int64) string {
	if ms <= 0 {
		return "-"
	}
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z")
}

// storeStats is "store stats".
func storeStats(ctx context.Context, d *inspect.Dir, _ *storeFlags, stdout, stderr io.Writer) (int, error) {
	code := exitOK
	s, err := d.Stats(ctx, func(x inspect.Finding) {
		if x.Damage {
			code = exitFailure
		}
		fmt.Fprintln(stderr, findingLine(x))
	})
	if err != nil {
		return exitFailure, err
	}
	out := bufio.NewWriter(stdout)
	state := "stopped cleanly"
	if s.Aborted {
		state = "in use, or not stopped cleanly"
	}
	fmt.Fprintf(out, "state         %s\n", state)
	fmt.Fprintf(out, "commit log    %d files of %d bytes, positions %d to %d (%d bytes), stored %s to %s\n",
		s.LogFiles, s.LogFileSize, s.LogBegin, s.LogEnd, s.LogEnd-s.LogBegin, stamp(s.FirstStored), stamp(s.LastStored))
	fmt.Fprintf(out, "checkpoint    log %s, queues %s, index %s\n", stamp(s.Checkpoint[0]), stamp(s.Checkpoint[1]), stamp(s.Checkpoint[2]))
	fmt.Fprintf(out, "index         %d files, %d entries\n", s.IndexFiles, s.IndexEntries)
	width, files, topics, messages := len("topic"), 0, 0, int64(0)
	for i, q := range s.Queues {
		width = max(width, len(q.Topic))
		files += q.Files
		messages += q.Max - q.Min
		if i == 0 || q.Topic != s.Queues[i-1].Topic {
			topics++
		}
	}
	fmt.Fprintf(out, "queues        %d of %d topics, %d files of %d bytes, %d messages\n", len(s.Queues), topics, files, s.QueueFileSize, messages)
	if len(s.Queues) > 0 {
		fmt.Fprintf(out, "\n%-*s %6s %12s %12s %12s\n", width, "topic", "queue", "min", "max", "messages")
		for _, q := range s.Queues {
			fmt.Fprintf(out, "%s %6d %12d %12d %12d\n", q.Topic+strings.Repeat(" ", width-len(q.Topic)), q.ID, q.Min, q.Max, q.Max-q.Min)
		}
	}
	return code, out.Flush()
}
