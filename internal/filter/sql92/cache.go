package sql92

import "sync"

// CacheSize is how many compiled expressions a [Cache] keeps, as many as
// Apache's broker.
const CacheSize = 100

// Cache keeps the expressions compiled last. The zero value is ready for use,
// by many goroutines at once.
type Cache struct {
	mu    sync.Mutex // guards all below; nothing is compiled under it
	byKey map[string]*Expr
	ring  [CacheSize]string
	next  int // place in ring of the oldest
}

// Compile is [Compile], from the cache if it can. It does not allocate then.
// Errors are not kept.
func (c *Cache) Compile(expr []byte) (*Expr, error) {
	c.mu.Lock()
	e := c.byKey[string(expr)]
	c.mu.Unlock()
	if e != nil {
		return e, nil
	}
	e, err := Compile(string(expr))
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if other := c.byKey[e.text]; other != nil {
		return other, nil // of somebody who was faster
	}
	if c.byKey == nil {
		c.byKey = make(map[string]*Expr, CacheSize)
	}
	if len(c.byKey) == CacheSize {
		delete(c.byKey, c.ring[c.next])
	}
	c.byKey[e.text] = e
	c.ring[c.next] = e.text
	c.next = (c.next + 1) % CacheSize
	return e, nil
}
