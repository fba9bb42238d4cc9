package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// timeline prints what happens, with the time since the start and who says it.
// It tells the first few of what happens often.
type timeline struct {
	began time.Time

	mu   sync.Mutex // guards all below
	out  io.Writer
	told map[string]int
}

func newTimeline(out io.Writer) *timeline {
	return &timeline{began: time.Now(), out: out, told: make(map[string]int)}
}

// often is how many of what happens often are told.
const often = 2

// say tells something.
func (t *timeline) say(who, format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.print(who, fmt.Sprintf(format, args...))
}

// some tells something of a kind if it is one of the first.
func (t *timeline) some(kind, who, format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch t.told[kind]++; {
	case t.told[kind] < often:
		t.print(who, fmt.Sprintf(format, args...))
	case t.told[kind] == often:
		t.print(who, fmt.Sprintf(format, args...)+"   (and so on)")
	}
}

// print needs t.mu. The output is for people: a line that cannot be written is
// not worth an end of the shop.
func (t *timeline) print(who, text string) {
	_, _ = fmt.Fprintf(t.out, "%7.3f  %-10s %s\n", time.Since(t.began).Seconds(), who, text)
}

// brief is the beginning of an error, which can be long: it tells of every
// attempt.
func brief(err error) string {
	text, long := err.Error(), 90
	if len(text) > long {
		text = text[:long] + "..."
	}
	return text
}

// euros writes an amount.
func euros(cents int64) string { return fmt.Sprintf("%d.%02d EUR", cents/100, cents%100) }
