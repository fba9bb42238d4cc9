// Package mocks has mocks of the module's narrow interfaces, for tests that are
// about how these are called. Everything else is tested against testbroker or
// a scripted server. "make generate" writes the files.
package mocks
