package pop

// The heap of held requests by deadline. Each op knows its index, so that it can
// be taken out from anywhere.

// push adds op and tells whether it is now the earliest.
func (p *polls) push(op parked) bool {
	op.held().inHeap = len(p.heap)
	p.heap = append(p.heap, op)
	p.up(op.held().inHeap)
	return op.held().inHeap == 0
}

// remove takes out the op at index i.
func (p *polls) remove(i int) {
	last := len(p.heap) - 1
	p.swap(i, last)
	p.heap[last] = nil
	p.heap = p.heap[:last]
	if i < last {
		p.down(i)
		p.up(i)
	}
}

func (p *polls) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !p.before(i, parent) {
			return
		}
		p.swap(i, parent)
		i = parent
	}
}

func (p *polls) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(p.heap) {
			return
		}
		if right := child + 1; right < len(p.heap) && p.before(right, child) {
			child = right
		}
		if !p.before(child, i) {
			return
		}
		p.swap(i, child)
		i = child
	}
}

func (p *polls) before(i, j int) bool {
	return p.heap[i].held().deadline.Before(p.heap[j].held().deadline)
}

func (p *polls) swap(i, j int) {
	p.heap[i], p.heap[j] = p.heap[j], p.heap[i]
	p.heap[i].held().inHeap = i
	p.heap[j].held().inHeap = j
}
