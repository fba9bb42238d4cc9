package consumer

// Middleware wraps a [Handler]: it can look at the messages and at the outcome,
// pass on another context, change the outcome, or not call the handler at all. It is
// called once for each subscription, by the constructor.
type Middleware func(next Handler) Handler

// WithMiddleware wraps the handlers of all subscriptions. The first is the
// outermost, in one call and over several; all of them are inside of what the consumer does itself:
// [WithHandlerTimeout] covers them, a panic in one is a failure of the messages, and
// what the outermost returns is the outcome. A batch comes as a batch, also to a
// handler made by [Each].
func WithMiddleware(m ...Middleware) Option {
	return func(c *config) {
		c.only(handling, "WithMiddleware", "there are no handlers")
		c.middleware = append(c.middleware, m...)
	}
}

// wrapHandlers puts the middleware around the handlers.
func (c *config) wrapHandlers() {
	for i, m := range c.middleware {
		if m == nil {
			c.fault("middleware %d is nil", i)
		}
	}
	if len(c.faults) > 0 {
		return
	}
	for i := range c.subs {
		s := &c.subs[i]
		for k := len(c.middleware) - 1; k >= 0; k-- {
			if s.handler = c.middleware[k](s.handler); s.handler == nil {
				c.fault("topic %q: middleware %d returned no handler", s.topic, k)
				break
			}
		}
	}
}
