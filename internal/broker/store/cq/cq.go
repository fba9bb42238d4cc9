// Package cq is the consume queue: per (topic, queue) a sequence of units of
// 20 bytes that say where in the commit log each message is.
package cq

// UnitSize is the length of a unit in bytes: physical offset 8, record size
// 4, tags code 8.
const UnitSize = 20
