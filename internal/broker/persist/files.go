package persist

import (
	"path/filepath"

	"github.com/gorocketmq/rocketmq/internal/broker/store/mfile"
)

// In is a folder of a file system. It is created on the first write.
func In(fs mfile.FS, dir string) Files { return folder{fs, dir} }

type folder struct {
	fs  mfile.FS
	dir string
}

func (f folder) ReadFile(name string) ([]byte, error) {
	return f.fs.ReadFile(filepath.Join(f.dir, name))
}

func (f folder) WriteFile(name string, data []byte) error {
	if err := f.fs.MkdirAll(f.dir); err != nil {
		return err
	}
	return f.fs.WriteFile(filepath.Join(f.dir, name), data)
}

func (f folder) Rename(from, to string) error {
	if err := f.fs.Rename(filepath.Join(f.dir, from), filepath.Join(f.dir, to)); err != nil {
		return err
	}
	return f.fs.SyncDir(f.dir)
}
