package inspect_test

import (
	"archive/tar"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/gorocketmq/rocketmq/internal/broker/store/inspect"
	"github.com/gorocketmq/rocketmq/internal/wire"
)

// image is a store directory in memory that a test damages.
type image struct {
	fstest.MapFS
	t testing.TB
}

// golden is the store that an Apache broker left.
func golden(t testing.TB, name string) image {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "testdata", "store-"+name+".tar.gz"))
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	im := image{fstest.MapFS{}, t}
	for tr := tar.NewReader(z); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return im
		}
		require.NoError(t, err)
		if p := path.Clean(h.Name); h.Typeflag == tar.TypeReg && p != "timerwheel" { // 38 MB that nobody reads
			b, err := io.ReadAll(tr)
			require.NoError(t, err)
			im.MapFS[p] = &fstest.MapFile{Data: b, Mode: 0o444}
		}
	}
}

// imageOf reads a directory.
func imageOf(t testing.TB, dir string) image {
	t.Helper()
	im := image{fstest.MapFS{}, t}
	require.NoError(t, fs.WalkDir(os.DirFS(dir), ".", func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(p)))
		im.MapFS[p] = &fstest.MapFile{Data: b, Mode: 0o444}
		return err
	}))
	return im
}

func (im image) bytes(p string) []byte {
	im.t.Helper()
	require.Contains(im.t, im.MapFS, p)
	return im.MapFS[p].Data
}

// flip changes one byte.
func (im image) flip(p string, at int64) { im.bytes(p)[at] ^= 0x40 }

// put64 overwrites eight bytes.
func (im image) put64(p string, at int64, v uint64) {
	binary.BigEndian.PutUint64(im.bytes(p)[at:], v)
}

// cut shortens a file to n bytes.
func (im image) cut(p string, n int64) { im.MapFS[p].Data = im.bytes(p)[:n] }

func (im image) remove(p string) {
	im.bytes(p)
	delete(im.MapFS, p)
}

func (im image) add(p string, b []byte) {
	im.MapFS[p] = &fstest.MapFile{Data: b, Mode: 0o444}
}

// under lists the files of a folder.
func (im image) under(dir string) []string {
	var out []string
	for p := range im.MapFS {
		if strings.HasPrefix(p, dir+"/") {
			out = append(out, p)
		}
	}
	slices.Sort(out)
	return out
}

// placed is a record and where it is.
type placed struct {
	wire.Record
	path string
	at   int64 // byte in the file
}

// body is the byte in the file at which the record's body begins.
func (r placed) body() int64 { return r.at + 88 }

// unit is the file and the byte of the record's unit.
func (r placed) unit(queueFile int64) (string, int64) {
	at := r.QueueOffset * 20
	return fmt.Sprintf("consumequeue/%s/%d/%020d", r.Topic, r.QueueID, at/queueFile*queueFile), at % queueFile
}

// records are all records of the log, with code of the test's own.
func (im image) records() (out []placed) {
	im.t.Helper()
	for _, p := range im.under("commitlog") {
		b := im.bytes(p)
		for at := 0; at < len(b); {
			r := placed{path: p, at: int64(at)}
			n, err := wire.DecodeRecord(b[at:], &r.Record)
			if err != nil {
				break
			}
			out = append(out, r)
			at += n
		}
	}
	require.NotEmpty(im.t, out)
	return out
}

// of are the records of a topic.
func (im image) of(topic string) []placed {
	im.t.Helper()
	all := slices.DeleteFunc(im.records(), func(r placed) bool { return string(r.Topic) != topic })
	require.NotEmpty(im.t, all)
	return all
}

// last is the newest record.
func (im image) last() placed {
	im.t.Helper()
	all := im.records()
	return all[len(all)-1]
}

// check runs a check and returns what it says.
func (im image) check(sizes inspect.Sizes) (inspect.Summary, []inspect.Finding) {
	im.t.Helper()
	return checkFS(im.t, im.MapFS, sizes)
}

func checkFS(t testing.TB, fsys fs.FS, sizes inspect.Sizes) (inspect.Summary, []inspect.Finding) {
	t.Helper()
	d, err := inspect.OpenFS(fsys, "store", sizes)
	require.NoError(t, err)
	var found []inspect.Finding
	sum, err := d.Check(t.Context(), func(f inspect.Finding) { found = append(found, f) })
	require.NoError(t, err)
	damage := 0
	for _, f := range found {
		if f.Damage {
			damage++
		}
	}
	require.Equal(t, damage, sum.Problems)
	require.Equal(t, len(found)-damage, sum.Notes)
	return sum, found
}

func damages(found []inspect.Finding) []inspect.Finding {
	return slices.DeleteFunc(slices.Clone(found), func(f inspect.Finding) bool { return !f.Damage })
}

// snapshot is what a directory is, to see that nothing changed.
func snapshot(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		i, err := e.Info()
		if err != nil {
			return err
		}
		text := fmt.Sprint(i.Mode(), i.ModTime().UnixNano())
		if !e.IsDir() {
			b, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			text += string(b)
		}
		out[p] = text
		return nil
	}))
	return out
}

func clone(im image) image {
	out := image{maps.Clone(im.MapFS), im.t}
	for p, f := range out.MapFS {
		out.add(p, slices.Clone(f.Data))
	}
	return out
}
