package wire

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// RecallRequest is the header of RECALL_MESSAGE (370).
type RecallRequest struct {
	Group      string // producer group
	Topic      string
	Handle     string // see RecallHandle
	BrokerName string
}

// EncodeExt writes the fields.
func (h *RecallRequest) EncodeExt(e *Encoder) {
	optText(e, "producerGroup", h.Group)
	e.Text("topic", h.Topic)
	e.Text("recallHandle", h.Handle)
	optText(e, "bname", h.BrokerName)
}

// DecodeExt reads the fields.
func (h *RecallRequest) DecodeExt(f *Frame) error {
	r := fieldReader{f: f}
	*h = RecallRequest{
		Group: f.Text("producerGroup"), Topic: r.text("topic"), Handle: r.text("recallHandle"), BrokerName: f.Text("bname"),
	}
	return r.err
}

// RecallResponse answers a recall.
type RecallResponse struct {
	MsgID  string // the client's id of the message that is recalled
	Region string // MSG_REGION
}

// EncodeExt writes the fields.
func (h *RecallResponse) EncodeExt(e *Encoder) {
	e.Text("msgId", h.MsgID)
	optText(e, "MSG_REGION", h.Region)
}

// DecodeExt reads the fields.
func (h *RecallResponse) DecodeExt(f *Frame) error {
	r := fieldReader{f: f}
	*h = RecallResponse{MsgID: r.text("msgId"), Region: f.Text("MSG_REGION")}
	return r.err
}

// RecallHandle names one delayed message, so that it can be recalled before it
// is delivered: RecallMessageHandle.HandleV1 of Apache RocketMQ. A broker makes
// it; the answer to a send has it.
type RecallHandle struct {
	Topic, Broker string
	DeliverTime   int64  // ms since 1970
	MessageID     string // the client's
}

const recallVersion = "v1"

// ErrRecallHandle is wrapped by the errors of texts that are no recall handles.
var ErrRecallHandle = errors.New("malformed recall handle")

// Append appends the handle as text: base64 of its parts with blanks between,
// in the alphabet for URLs and padded.
func (h *RecallHandle) Append(dst []byte) []byte {
	text := recallVersion + " " + h.Topic + " " + h.Broker + " " + strconv.FormatInt(h.DeliverTime, 10) + " " + h.MessageID
	return base64.URLEncoding.AppendEncode(dst, []byte(text))
}

// ParseRecallHandle reads a handle, with its padding or without.
func ParseRecallHandle(s string) (RecallHandle, error) {
	bad := func(why string) (RecallHandle, error) {
		return RecallHandle{}, fmt.Errorf("%w %q: %s", ErrRecallHandle, clip([]byte(s)), why)
	}
	if s == "" {
		return bad("it is empty")
	}
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(s, "="))
	if err != nil {
		return bad("it is not base64")
	}
	parts := strings.Split(string(raw), " ")
	if parts[0] != recallVersion {
		return bad("its version is not " + recallVersion)
	}
	if len(parts) != 5 || parts[1] == "" || parts[2] == "" || parts[4] == "" {
		return bad("version, topic, broker, time and message id are expected")
	}
	at, err := strconv.ParseInt(parts[3], 10, 64)
	if err != nil || at < 0 {
		return bad("its time is not a number of milliseconds")
	}
	return RecallHandle{Topic: parts[1], Broker: parts[2], DeliverTime: at, MessageID: parts[4]}, nil
}
