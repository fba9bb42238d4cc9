package namesrv

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"sync"

	"github.com/gorocketmq/rocketmq/internal/run"
)

// orderNamespace holds, by topic, the queues of each broker for topics that
// must keep a global order: NamesrvUtil.NAMESPACE_ORDER_TOPIC_CONFIG.
const orderNamespace = "ORDER_TOPIC_CONFIG"

// kvStore is the key-value configuration, KVConfigManager of Apache: the only
// thing a name server keeps across restarts, in a file of Apache's format.
// Changes are visible at once; whoever asked for one is told when it is on
// disk. One goroutine writes, and one write serves all who wait for it.
type kvStore struct {
	path string // "": memory only

	mu      sync.RWMutex
	table   map[string]map[string]string // namespace, key
	waiting []func(error)                // told after the next write
	kick    chan struct{}                // capacity 1: a write is wanted
}

// kvFile is kvConfig.json.
type kvFile struct {
	ConfigTable map[string]map[string]string `json:"configTable"`
}

// openKV reads the file at path, which need not exist, and starts the writer.
func openKV(g *run.Group, path string) (*kvStore, error) {
	s := &kvStore{path: path, table: map[string]map[string]string{}, kick: make(chan struct{}, 1)}
	if path == "" {
		return s, nil
	}
	b, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("key-value configuration: %w", err)
	default:
		var f kvFile
		if err := json.Unmarshal(b, &f); err != nil {
			return nil, fmt.Errorf("key-value configuration %s is not readable, repair or remove it: %w", path, err)
		}
		for ns, kv := range f.ConfigTable {
			if kv != nil {
				s.table[ns] = kv
			}
		}
	}
	g.Go(s.write)
	return s, nil
}

func (s *kvStore) get(ns, key string) (string, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	v, ok := s.table[ns][key]
	return v, ok
}

// list is a copy of a namespace, nil if there is none.
func (s *kvStore) list(ns string) map[string]string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return maps.Clone(s.table[ns])
}

// put sets a value; done is called once it is stored, or with why it is not.
// The value counts until a restart even then.
func (s *kvStore) put(ns, key, value string, done func(error)) {
	s.change(func() {
		if s.table[ns] == nil {
			s.table[ns] = map[string]string{}
		}
		s.table[ns][key] = value
	}, done)
}

// remove deletes a value. That there was none is not an error.
func (s *kvStore) remove(ns, key string, done func(error)) {
	s.change(func() { delete(s.table[ns], key) }, done)
}

func (s *kvStore) change(f func(), done func(error)) {
	s.mu.Lock()
	f()
	if s.path != "" {
		s.waiting = append(s.waiting, done)
	}
	s.mu.Unlock()
	if s.path == "" {
		done(nil)
		return
	}
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// write is the writer's goroutine. It serves what was asked before its end.
func (s *kvStore) write(ctx context.Context) {
	for {
		select {
		case <-s.kick:
			s.flush()
		case <-ctx.Done():
			s.flush()
			return
		}
	}
}

func (s *kvStore) flush() {
	s.mu.Lock()
	waiting := s.waiting
	s.waiting = nil
	var buf bytes.Buffer
	var err error
	if len(waiting) > 0 {
		enc := json.NewEncoder(&buf)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "\t")
		err = enc.Encode(kvFile{s.table})
	}
	s.mu.Unlock()
	if len(waiting) == 0 {
		return
	}
	if err == nil {
		err = replaceFile(s.path, buf.Bytes())
	}
	for _, done := range waiting {
		done(err)
	}
}

// replaceFile writes a file so that a crash leaves the old or the new one.
func replaceFile(path string, b []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp")
	if err != nil {
		return err
	}
	_, err = tmp.Write(b)
	if err == nil {
		err = tmp.Sync()
	}
	err = errors.Join(err, tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	return nil
}
