package wire

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
)

// RegisterBrokerBody is the body of REGISTER_BROKER (103): all topics of a
// broker.
type RegisterBrokerBody struct {
	FilterServers  []string // legacy
	Version        DataVersion
	MappingVersion DataVersion // of static topics, which are not supported; 5.x
	Topics         map[string]TopicConfig
}

// maxInflated bounds what a compressed registration may grow to.
const maxInflated = 64 << 20

// AppendJSON appends the plain form.
func (d *RegisterBrokerBody) AppendJSON(dst []byte) []byte {
	w := jsonWriter{b: dst}
	w.open('{')
	w.texts("filterServerList", d.FilterServers)
	w.key("topicConfigSerializeWrapper")
	w.topicConfigs(&TopicConfigs{Version: d.Version, MappingVersion: d.MappingVersion, Topics: d.Topics})
	w.close('}')
	return w.b
}

// AppendCompressed appends the compressed form. It says neither Order nor
// SysFlag of the topics.
func (d *RegisterBrokerBody) AppendCompressed(dst []byte) []byte {
	out := bytes.NewBuffer(dst)
	z := zlib.NewWriter(out)
	_, _ = z.Write(d.appendInflated(nil)) // a Buffer does not fail
	_ = z.Close()
	return out.Bytes()
}

// appendInflated appends what is compressed: texts with a length in front.
func (d *RegisterBrokerBody) appendInflated(b []byte) []byte {
	b = appendSized(b, d.Version.AppendJSON)
	b = binary.BigEndian.AppendUint32(b, uint32(len(d.Topics)))
	for _, name := range sortedKeys(d.Topics) {
		t := d.Topics[name]
		b = appendSized(b, t.appendText)
	}
	b = appendSized(b, func(b []byte) []byte {
		w := jsonWriter{b: b}
		w.open('[')
		for _, s := range d.FilterServers {
			w.sep()
			w.quote(s)
		}
		w.close(']')
		return w.b
	})
	return binary.BigEndian.AppendUint32(b, 0) // static topics
}

func appendSized(b []byte, f func([]byte) []byte) []byte {
	at := len(b)
	b = f(append(b, 0, 0, 0, 0))
	binary.BigEndian.PutUint32(b[at:], uint32(len(b)-at-4))
	return b
}

// appendText appends the topic as one line, the way TopicConfig.encode does.
func (d *TopicConfig) appendText(b []byte) []byte {
	b = fmt.Appendf(b, "%s %d %d %d %s ", d.Name, d.ReadQueues, d.WriteQueues, d.Perm, orSingleTag(d.FilterType))
	w := jsonWriter{b: b}
	w.open('{')
	for _, k := range sortedKeys(d.Attributes) {
		w.textKey(k)
		w.quote(d.Attributes[k])
	}
	w.close('}')
	return w.b
}

// parseText reads the line; 4.9 ends it after the filter type.
func (d *TopicConfig) parseText(s string) error {
	p := strings.SplitN(s, " ", 6)
	if len(p) < 5 {
		return fmt.Errorf("%w: registration: topic %q has %d of 5 parts", ErrBody, s[:min(len(s), 64)], len(p))
	}
	*d = NewTopicConfig(p[0])
	r := jsonReader{}
	for i, field := range []*int32{&d.ReadQueues, &d.WriteQueues, &d.Perm} {
		r.b, r.i = []byte(p[i+1]), 0
		*field = r.int32()
	}
	d.FilterType = orSingleTag(p[4])
	if len(p) == 6 && p[5] != "" {
		r.b, r.i = []byte(p[5]), 0
		d.Attributes = r.textMap()
	}
	return r.finish("registration: topic " + d.Name)
}

// DecodeRegisterBrokerBody reads either form. Which one it is tells the first
// byte, since 5.x brokers call a compressed body uncompressed.
func DecodeRegisterBrokerBody(b []byte) (RegisterBrokerBody, error) {
	if len(b) > 0 && b[0] == 0x78 {
		return decodeCompressed(b, maxInflated)
	}
	r := jsonReader{b: b}
	d := RegisterBrokerBody{Topics: map[string]TopicConfig{}}
	r.object(func(k jsonKey) {
		switch string(k.text) {
		case "filterServerList":
			d.FilterServers = r.texts()
		case "topicConfigSerializeWrapper":
			t := r.topicConfigs()
			d.Version, d.MappingVersion, d.Topics = t.Version, t.MappingVersion, t.Topics
		}
	})
	return d, r.finish("registration")
}

func decodeCompressed(b []byte, limit int64) (RegisterBrokerBody, error) {
	d := RegisterBrokerBody{Topics: map[string]TopicConfig{}}
	z, err := zlib.NewReader(bytes.NewReader(b))
	if err != nil {
		return d, fmt.Errorf("%w: registration: %w", ErrBody, err)
	}
	in := &io.LimitedReader{R: z, N: limit}
	err = d.inflate(in)
	if in.N <= 0 {
		err = fmt.Errorf("inflates to more than %d bytes", limit)
	}
	if err != nil {
		return d, fmt.Errorf("%w: registration: %w", ErrBody, err)
	}
	return d, nil
}

func (d *RegisterBrokerBody) inflate(in io.Reader) error {
	s, err := readSized(in)
	if err != nil {
		return err
	}
	if d.Version, err = DecodeDataVersion(s); err != nil {
		return err
	}
	n, err := readInt32(in)
	if err != nil || n < 0 {
		return errors.Join(errors.New("number of topics"), err)
	}
	for ; n > 0; n-- {
		if s, err = readSized(in); err != nil {
			return err
		}
		var t TopicConfig
		if err = t.parseText(string(s)); err != nil {
			return err
		}
		d.Topics[t.Name] = t
	}
	if s, err = readSized(in); err != nil {
		return err
	}
	r := jsonReader{b: s}
	d.FilterServers = r.texts()
	if err := r.finish("filter servers"); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, in) // static topics, which are not supported, and the checksum
	return err
}

func readInt32(in io.Reader) (int32, error) {
	var b [4]byte
	if _, err := io.ReadFull(in, b[:]); err != nil {
		return 0, err
	}
	return int32(binary.BigEndian.Uint32(b[:])), nil
}

// readSized reads a text with its length in front. It grows with what is there,
// not with what the length claims.
func readSized(in io.Reader) ([]byte, error) {
	n, err := readInt32(in)
	if err != nil {
		return nil, err
	}
	if n < 0 {
		return nil, fmt.Errorf("a length of %d", n)
	}
	var out bytes.Buffer
	if _, err := io.CopyN(&out, in, int64(n)); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// BodyCRC is the checksum of message and registration bodies: CRC-32 (IEEE)
// without its highest bit.
func BodyCRC(b []byte) uint32 { return crc32.ChecksumIEEE(b) & 0x7FFFFFFF }
