package inspect

import (
	"bytes"
	"io/fs"
	"path"
	"strings"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

// config checks the syntax of the tables in config and reads the list of
// topics.
func (c *checker) config() {
	es, err := c.list("config")
	if err != nil {
		c.damage("config", whole, "cannot be read: %v", err)
		return
	}
	good := map[string]bool{}
	for _, e := range es {
		table := strings.TrimSuffix(e.name, ".bak")
		if e.dir || !isTable(table) {
			continue
		}
		c.sum.Files++
		p := path.Join("config", e.name)
		var b []byte
		if err = e.err; err == nil {
			b, err = fs.ReadFile(c.fsys, p)
		}
		if err != nil {
			c.damage(p, whole, "cannot be read: %v", err)
			continue
		}
		// A crash between creating and filling a file leaves it empty or cut;
		// brokers then take the other one.
		at, why := checkJSON(b)
		switch {
		case why == "":
			good[table] = true
			if table == "topics.json" && c.topics == nil || e.name == "topics.json" {
				c.readTopics(p, b)
			}
		case c.aborted && (len(bytes.TrimSpace(b)) == 0 || at >= len(b)):
			c.note(p, int64(at), "%s, as a crash leaves it; brokers take the other one of file and .bak", why)
		default:
			c.damage(p, int64(at), "%s", why)
		}
	}
	for _, e := range es {
		if table := strings.TrimSuffix(e.name, ".bak"); isTable(table) && !e.dir && !good[table] && c.aborted {
			good[table] = true
			c.damage(path.Join("config", table), whole, "neither the file nor its .bak can be read")
		}
	}
}

// isTable reports whether a file of config has JSON.
func isTable(name string) bool {
	return strings.HasSuffix(name, ".json") || name == "timermetrics" || name == "transactionMetrics"
}

// readTopics notes the names of the topics.
func (c *checker) readTopics(p string, b []byte) {
	// The decoder undoes escapes in place; these bytes are ours.
	t, err := wire.DecodeTopicConfigs(b)
	if err != nil {
		c.damage(p, whole, "not a table of topics: %v", err)
		return
	}
	c.topics = map[string]bool{}
	for name := range t.Topics {
		c.topics[name] = true
	}
}

// checkJSON looks whether b is one JSON value, as Apache's brokers write it:
// keys of objects may be numbers without quotes. It returns where it is not
// and why.
func checkJSON(b []byte) (at int, why string) {
	s := &jsonScan{b: b}
	s.value(0)
	if s.why == "" {
		if s.space(); s.at < len(b) {
			s.fail("there is something behind the end of the JSON value")
		}
	}
	return s.at, s.why
}

// jsonScan is a reader of JSON that keeps nothing.
type jsonScan struct {
	b   []byte
	at  int
	why string
}

// maxDepth bounds nesting, and with it the stack.
const maxDepth = 200

func (s *jsonScan) fail(why string) {
	if s.why == "" {
		s.why = why
	}
}

func (s *jsonScan) space() {
	for s.at < len(s.b) && strings.IndexByte(" \t\r\n", s.b[s.at]) >= 0 {
		s.at++
	}
}

// next is the next byte that is no space, 0 at the end.
func (s *jsonScan) next() byte {
	if s.space(); s.at < len(s.b) {
		return s.b[s.at]
	}
	return 0
}

func (s *jsonScan) value(depth int) {
	if depth > maxDepth {
		s.fail("JSON that is nested too deeply")
		return
	}
	switch x := s.next(); {
	case x == '{':
		s.list('}', func() {
			if s.next() == '"' {
				s.text()
			} else {
				s.word()
			}
			if s.why == "" && s.next() != ':' {
				s.fail("JSON with a key that no colon follows")
			}
			if s.why != "" {
				return
			}
			s.at++
			s.value(depth + 1)
		})
	case x == '[':
		s.list(']', func() { s.value(depth + 1) })
	case x == '"':
		s.text()
	case x == 0:
		s.fail("JSON that ends too early")
	default:
		s.word()
	}
}

// list reads items up to the closing byte.
func (s *jsonScan) list(end byte, item func()) {
	s.at++
	if s.next() == end {
		s.at++
		return
	}
	for s.why == "" {
		item()
		if s.why != "" {
			return
		}
		switch x := s.next(); x {
		case ',':
			s.at++
		case end:
			s.at++
			return
		case 0:
			s.fail("JSON that ends too early")
		default:
			s.fail("JSON with neither a comma nor an end after a value")
		}
	}
}

func (s *jsonScan) text() {
	for s.at++; s.at < len(s.b); s.at++ {
		switch x := s.b[s.at]; {
		case x == '"':
			s.at++
			return
		case x == '\\':
			s.at++
		case x < ' ':
			s.fail("JSON with a control character in a text")
			return
		}
	}
	s.at = len(s.b)
	s.fail("JSON that ends within a text")
}

// word reads a number, true, false or null.
func (s *jsonScan) word() {
	from := s.at
	for s.at < len(s.b) && (s.b[s.at] >= '0' && s.b[s.at] <= '9' || s.b[s.at] >= 'a' && s.b[s.at] <= 'z' ||
		strings.IndexByte("+-.E", s.b[s.at]) >= 0) {
		s.at++
	}
	w := string(s.b[from:s.at])
	number := len(w) > 0 && (w[0] >= '0' && w[0] <= '9' || w[0] == '-')
	switch {
	case number || w == "true" || w == "false" || w == "null":
	case from >= len(s.b):
		s.fail("JSON that ends too early")
	default:
		s.at = from
		s.fail("not JSON")
	}
}
