package client

import (
	"strings"

	"github.com/gorocketmq/rocketmq/internal/wire"
)

// Wrap puts the namespace before a topic or group, as NamespaceUtil does:
// NS%name, and behind the prefix of retry and dead-letter topics. System names
// and names that have it already stay as they are, and so do the reply topics
// of clusters, which exist once for all namespaces.
func (r *Runtime) Wrap(name string) string {
	ns := r.cfg.Namespace
	if ns == "" || name == "" || wire.IsSystemTopic(name) || wire.IsReplyTopic(name) || wire.IsSystemGroup(name) {
		return name
	}
	prefix, rest := splitPrefix(name)
	if strings.HasPrefix(rest, ns+"%") {
		return name
	}
	return prefix + ns + "%" + rest
}

// Unwrap undoes [Runtime.Wrap].
func (r *Runtime) Unwrap(name string) string {
	ns := r.cfg.Namespace
	if ns == "" {
		return name
	}
	prefix, rest := splitPrefix(name)
	return prefix + strings.TrimPrefix(rest, ns+"%")
}

func splitPrefix(name string) (prefix, rest string) {
	for _, p := range [...]string{wire.RetryPrefix, wire.DLQPrefix} {
		if strings.HasPrefix(name, p) {
			return p, name[len(p):]
		}
	}
	return "", name
}
