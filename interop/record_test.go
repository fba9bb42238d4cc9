//go:build interop

package interop

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/producer"
)

// A record is what one side knows about a message: what the sender was told
// or what the receiver saw. The programs of the suite write and read the same,
// see java/Record.java. Properties are fields that start with "p.".
type record map[string]string

// sentRecord is what our producer knows about a message. Without a result (of
// a one-way message) nothing is known about where it went.
func sentRecord(mode string, m *rocketmq.Message, r *producer.Result) record {
	rec := record{
		"mode": mode, "topic": m.Topic, "tag": m.Tag, "keys": strings.Join(m.Keys, " "), "sharding": m.ShardingKey,
	}
	rec.body(m.Body)
	for k, v := range m.Properties {
		rec["p."+k] = v
	}
	if r != nil {
		rec["id"], rec["offsetId"] = r.MessageID, r.OffsetID
		rec["broker"], rec["queue"] = r.Queue.Broker, strconv.Itoa(r.Queue.ID)
		rec["offset"], rec["status"] = strconv.FormatInt(r.Offset, 10), r.Status.String()
	}
	return rec
}

// viewRecord is what our consumer saw.
func viewRecord(v *rocketmq.MessageView) record {
	rec := record{
		"topic": v.Topic, "tag": v.Tag, "keys": strings.Join(v.Keys, " "), "sharding": v.ShardingKey,
		"id": v.ID, "offsetId": v.OffsetID, "broker": v.Queue.Broker, "queue": strconv.Itoa(v.Queue.ID),
		"offset": strconv.FormatInt(v.Offset, 10), "attempts": strconv.Itoa(v.Attempt - 1),
		"born": strconv.FormatInt(v.BornAt.UnixMilli(), 10), "stored": strconv.FormatInt(v.StoredAt.UnixMilli(), 10),
	}
	rec.body(v.Body)
	for k, v := range v.Properties.All() {
		rec["p."+k] = v
	}
	return rec
}

func (r record) body(b []byte) {
	sum := sha256.Sum256(b)
	r["size"], r["sha"] = strconv.Itoa(len(b)), hex.EncodeToString(sum[:])
}

// key names the message: every message of the suite has a first key of its own.
func (r record) key() string {
	key, _, _ := strings.Cut(r["keys"], " ")
	return key
}

// user are the properties that are not the protocol's.
func (r record) user() map[string]string {
	m := make(map[string]string)
	for k, v := range r {
		if name, ok := strings.CutPrefix(k, "p."); ok {
			m[name] = v
		}
	}
	m = rocketmq.NewProperties(m).User()
	delete(m, "TRACE_ON") // set by clients and brokers of Apache
	return m
}

// number is a field that must be one.
func (r record) number(t *testing.T, name string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(r[name], 10, 64)
	if err != nil {
		t.Errorf("%s: field %s: %v", r.key(), name, err)
	}
	return n
}

// readRecords reads a file that a program of the suite wrote.
func readRecords(t *testing.T, file string) []record {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out []record
	for line := range strings.Lines(string(text)) {
		out = append(out, parseRecord(t, file, strings.TrimSuffix(line, "\n")))
	}
	return out
}

func parseRecord(t *testing.T, file, line string) record {
	t.Helper()
	fields, err := url.ParseQuery(line)
	if err != nil {
		t.Errorf("%s: %v", file, err)
	}
	rec := make(record, len(fields))
	for k, v := range fields {
		rec[k] = v[0]
	}
	return rec
}

// sameRecords compares what was sent with what was received, message by
// message and field by field, and returns the counts, those of each mode too.
func sameRecords(t *testing.T, sent, got []record) string {
	t.Helper()
	byKey := make(map[string]record, len(got))
	for _, r := range got {
		if _, again := byKey[r.key()]; !again {
			byKey[r.key()] = r
		}
	}
	var faults []string
	missing, places, modes, order := 0, make(map[string]string), make(map[string]int), []string(nil)
	for _, s := range sent {
		if modes[s["mode"]]++; modes[s["mode"]] == 1 {
			order = append(order, s["mode"])
		}
		r := byKey[s.key()]
		if r == nil {
			missing++
			faults = append(faults, s.key()+": not received")
			continue
		}
		faults = append(faults, differences(s, r)...)
		place := r["topic"] + "/" + r["broker"] + "/" + r["queue"] + "/" + r["offset"]
		if other, taken := places[place]; taken {
			faults = append(faults, fmt.Sprintf("%s and %s are both at %s", s.key(), other, place))
		}
		places[place] = s.key()
		delete(byKey, s.key())
	}
	for key := range byKey {
		faults = append(faults, key+": received but never sent")
	}
	received := len(sent) - missing
	line := fmt.Sprintf("sent %d received %d missing %d duplicates %d altered %d",
		len(sent), received, missing, len(got)-received-len(byKey), len(faults)-missing)
	if len(faults) > 0 || len(got) != len(sent) {
		t.Errorf("%s\n%s", line, strings.Join(faults[:min(20, len(faults))], "\n"))
	}
	parts := make([]string, len(order))
	for i, mode := range order {
		parts[i] = fmt.Sprint(mode, " ", modes[mode])
	}
	return line + ": " + strings.Join(parts, ", ")
}

// differences of a message as sent and as received.
func differences(sent, got record) (faults []string) {
	for name, want := range sent {
		if name == "mode" || strings.HasPrefix(name, "p.") || name == "status" {
			continue
		}
		if got[name] != want {
			faults = append(faults, fmt.Sprintf("%s: %s sent %q, received %q", sent.key(), name, want, got[name]))
		}
	}
	if s, ok := sent["status"]; ok && s != "SEND_OK" {
		faults = append(faults, fmt.Sprintf("%s: send status %q", sent.key(), s))
	}
	if want, have := sent.user(), got.user(); !maps.Equal(want, have) {
		faults = append(faults, fmt.Sprintf("%s: properties sent %q, received %q", sent.key(), want, have))
	}
	own := got["p.UNIQ_KEY"]
	if own == "" && sent["id"] == "" { // the official Go client gives members of batches none
		own = got["offsetId"]
	}
	if got["id"] != own {
		faults = append(faults, fmt.Sprintf("%s: id %q, want %q", sent.key(), got["id"], own))
	}
	if got["attempts"] != "0" {
		faults = append(faults, fmt.Sprintf("%s: %s attempts", sent.key(), got["attempts"]))
	}
	slices.Sort(faults)
	return faults
}
