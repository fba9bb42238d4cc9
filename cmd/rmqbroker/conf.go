package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/gorocketmq/rocketmq/internal/broker"
)

// unsupported are settings that change what a broker promises. To ignore one
// would be to break the promise, so the start fails. Keys that are neither
// known to the broker nor listed here only lead to a warning.
var unsupported = map[string]struct {
	accept []string // values, in any case, that mean what this broker does anyway
	why    string
}{
	"brokerRole":            {[]string{"ASYNC_MASTER"}, "only ASYNC_MASTER is implemented"},
	"enableDLegerCommitLog": {[]string{"false"}, "DLedger is not implemented"},
	"enableControllerMode":  {[]string{"false"}, "the controller is not implemented"},
	"aclEnable":             {[]string{"false"}, "access control is not implemented"},
	"authenticationEnabled": {[]string{"false"}, "access control is not implemented"},
	"authorizationEnabled":  {[]string{"false"}, "access control is not implemented"},
	"storeType":             {[]string{"default"}, "only the default store is implemented"},
}

// loadConf applies a broker.conf to cfg and returns what the user should know.
func loadConf(cfg *broker.Config, path string) (warnings []string, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	props, err := parseProperties(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var commitLog property
	bound := false
	for _, p := range props {
		if p.key == "storePathCommitLog" {
			commitLog = p
			continue
		}
		bound = bound || p.key == "bindAddress"
		known, err := setKey(cfg, p)
		if err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", path, p.line, err)
		}
		if !known {
			warnings = append(warnings, fmt.Sprintf("%s: line %d: %s has no effect here", path, p.line, p.key))
		}
	}
	// The broker keeps its commit log under its root, which may be set after
	// this key, or by a flag.
	if v := commitLog.value; v != "" && filepath.Clean(v) != filepath.Join(cfg.Store.Dir, "commitlog") {
		return nil, fmt.Errorf("%s: line %d: storePathCommitLog=%s: the commit log is always in the folder commitlog of storePathRootDir",
			path, commitLog.line, v)
	}
	if !bound && cfg.AdvertiseAddr != "" {
		// As Apache: whoever tells others an address listens on it.
		if _, err := cfg.Set("bindAddress", "0.0.0.0"); err != nil {
			return nil, err
		}
	}
	return warnings, nil
}

// setKey applies one entry. Booleans are taken strictly: Apache reads a typing
// mistake as false.
func setKey(cfg *broker.Config, p property) (known bool, err error) {
	if u, ok := unsupported[p.key]; ok {
		for _, v := range u.accept {
			if strings.EqualFold(v, p.value) {
				return true, nil
			}
		}
		return true, fmt.Errorf("%s=%s: %s", p.key, p.value, u.why)
	}
	return cfg.Set(p.key, p.value)
}
