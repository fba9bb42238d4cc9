package rocketmq

import (
	"iter"
	"slices"
	"strings"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Properties are the properties of a received message, the sender's and the
// system's, in the encoding they travel in. They are decoded when they are
// asked for: most handlers never look, and a map per message costs more than
// the rest of its delivery. [NewProperties] makes them from a map, for tests.
type Properties string

// The separators of the encoding: name 0x01 value 0x02, repeated.
const (
	nameEnd  = "\x01"
	valueEnd = "\x02"
)

// NewProperties encodes a map. Entries with an empty name or value are left
// out, as a broker would drop them.
func NewProperties(m map[string]string) Properties {
	names := make([]string, 0, len(m))
	for k, v := range m {
		if k != "" && v != "" {
			names = append(names, k)
		}
	}
	slices.Sort(names)
	var b strings.Builder
	for _, k := range names {
		b.WriteString(k)
		b.WriteString(nameEnd)
		b.WriteString(m[k])
		b.WriteString(valueEnd)
	}
	return Properties(b.String())
}

// Get is the value of a property, "" if there is none of that name.
func (p Properties) Get(name string) string {
	v, _ := p.Lookup(name)
	return v
}

// Lookup is the value of a property and whether it is there. Of equal names
// the last one counts, as for MessageDecoder.string2messageProperties. It does
// not allocate.
func (p Properties) Lookup(name string) (value string, ok bool) {
	for k, v := range p.All() {
		if k == name {
			value, ok = v, true
		}
	}
	return value, ok
}

// All iterates over all properties in the order they came.
func (p Properties) All() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		rest := string(p)
		for rest != "" {
			var entry string
			entry, rest, _ = strings.Cut(rest, valueEnd)
			name, value, _ := strings.Cut(entry, nameEnd)
			if name == "" || value == "" {
				continue
			}
			if !yield(name, value) {
				return
			}
		}
	}
}

// User returns the sender's own properties, without the names that the
// protocol uses itself. The map is fresh, and nil if there are none.
func (p Properties) User() map[string]string { return p.filter(false) }

// System returns the properties that are not the sender's own, for example
// MSG_REGION or CLUSTER. The map is fresh, and nil if there are none.
func (p Properties) System() map[string]string { return p.filter(true) }

func (p Properties) filter(system bool) map[string]string {
	var m map[string]string
	for k, v := range p.All() {
		if systemProperty(k) != system {
			continue
		}
		if m == nil {
			m = make(map[string]string)
		}
		m[k] = v
	}
	return m
}

// systemProperty is wider than what a sender may not set: some names were never
// reserved although only brokers and libraries use them.
func systemProperty(name string) bool {
	switch name {
	case wire.PropShardingKey, wire.PropTransactionID, wire.PropTranCheckTimes, wire.PropCheckImmunitySeconds,
		wire.PropTranPreparedOffset, wire.PropInnerNum, wire.PropInnerBase, wire.PropForwardQueueID, wire.PropRedirect,
		wire.PropInnerMultiDispatch:
		return true
	}
	return wire.IsReservedProperty(name) || strings.HasPrefix(name, wire.PropTransientPrefix)
}
