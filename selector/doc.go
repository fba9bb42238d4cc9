// Package selector holds two families: a [QueueSelector] decides which queue a
// message goes to, an [Expr] which messages a subscription gets.
package selector
