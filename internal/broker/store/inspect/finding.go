package inspect

import (
	"fmt"
	"math"
)

// Finding is one thing that is not as it should be.
type Finding struct {
	// Path is the file or directory, beginning with the store's directory as
	// it was given.
	Path string
	// Offset is the byte within the file; -1 where it is about all of it.
	Offset int64
	// Text says what is wrong.
	Text string
	// Damage is false for what the next start of a broker puts right by itself,
	// such as a torn tail after a crash.
	Damage bool
}

// String is the finding in one line, without saying whether it is damage.
func (f Finding) String() string {
	if f.Offset < 0 {
		return fmt.Sprintf("%s: %s", f.Path, f.Text)
	}
	return fmt.Sprintf("%s at byte %d: %s", f.Path, f.Offset, f.Text)
}

// Summary is what a check has looked at.
type Summary struct {
	Files    int   // read: log, queues, index, checkpoint, abort, config
	Messages int64 // whole records in the commit log
	Problems int   // findings that are damage
	Notes    int   // findings that are not
}

// String is the summary as the last line of a check.
func (s Summary) String() string {
	return fmt.Sprintf("checked %d files, %d messages, %d problems", s.Files, s.Messages, s.Problems)
}

// whole is the offset of a finding about all of a file.
const whole = -1

// never is a log position after all others.
const never = math.MaxInt64
