// Package index is the key index of a store: it finds records by their unique
// id and by their keys. Its files are those of Apache's IndexService, byte for
// byte; FORMAT.md of the store describes them. An index is made from the log
// and can always be made anew.
//
// One goroutine writes; queries, [Index.Clean] and [Index.Flush] run beside it.
package index
