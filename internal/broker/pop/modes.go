package pop

import (
	"sync"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

// ModesFile is where the request modes are kept, in the config folder.
const ModesFile = "messageRequestMode.json"

// Modes says which groups pop messages of which topics, and which pull them:
// MessageRequestModeManager of Apache's broker. All methods are safe for
// concurrent use; the zero value is ready.
type Modes struct {
	mu    sync.Mutex // guards modes; nothing is called under it
	modes map[string]map[string]wire.RequestMode
}

// Get returns the mode of a group for a topic. Without one that was set a group
// pulls.
func (m *Modes) Get(topic, group string) wire.RequestMode {
	m.mu.Lock()
	defer m.mu.Unlock()
	if mode, ok := m.modes[topic][group]; ok {
		return mode
	}
	return wire.RequestMode{Group: group, Topic: topic, Mode: wire.ModePull}
}

// Set sets the mode of a group for a topic.
func (m *Modes) Set(mode wire.RequestMode) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.modes == nil {
		m.modes = map[string]map[string]wire.RequestMode{}
	}
	if m.modes[mode.Topic] == nil {
		m.modes[mode.Topic] = map[string]wire.RequestMode{}
	}
	m.modes[mode.Topic][mode.Group] = mode
}

// Encode is the content of [ModesFile].
func (m *Modes) Encode() []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	doc := wire.RequestModes{Modes: m.modes}
	return doc.AppendJSON(nil)
}

// Decode replaces the modes by the content of [ModesFile].
func (m *Modes) Decode(doc []byte) error {
	d, err := wire.DecodeRequestModes(doc)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.modes = d.Modes
	return nil
}
