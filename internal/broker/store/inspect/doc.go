// Package inspect reads a store directory without opening the store: it
// compares everything that is in it with the format (FORMAT.md of package
// store) and with each other, finds messages, and counts.
//
// Nothing is written, locked or mapped: files are opened for reading only,
// through io/fs, which has no other way. So it works on a read-only disk, and
// beside a running broker. What a broker does meanwhile is not taken for
// damage: consume queues are measured first and the log is read after them,
// so that every unit seen has its record.
//
// It shares the codec of records and units with the store, but none of its
// reading code: it is there to find the store's faults, too.
package inspect
