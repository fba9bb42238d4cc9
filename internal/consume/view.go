package consume

import (
	"fmt"

	"github.com/gorocketmq/rocketmq"
	"github.com/gorocketmq/rocketmq/internal/inflate"
)

// Views decodes stored messages of one queue, as the body of a pull response
// holds them, the way a consumer gets them: bodies decompressed, inner batches
// unpacked. It takes body over. On an error it returns the messages before the
// one that cannot be read. It is for those who look at a broker's messages
// without consuming them.
func Views(q rocketmq.Queue, body []byte) ([]*rocketmq.MessageView, error) {
	p, _, err := decodePage(&queue{key: q}, body, 0, func(topic string) string { return topic }, func(string) bool { return true })
	var f inflate.Inflater
	for i, v := range p.ptrs {
		b, ferr := f.Inflate(v.Body, p.meta[i].sysFlag)
		if ferr != nil {
			return p.ptrs[:i], fmt.Errorf("message %s: %w", v.ID, ferr)
		}
		v.Body = b
	}
	return p.ptrs, err
}
