package timer

// timeHeap is a heap of times, the earliest first.
type timeHeap []int64

func (h timeHeap) first() (int64, bool) {
	if len(h) == 0 {
		return 0, false
	}
	return h[0], true
}

func (h *timeHeap) push(t int64) {
	*h = append(*h, t)
	a := *h
	for i := len(a) - 1; i > 0; {
		up := (i - 1) / 2
		if a[up] <= a[i] {
			return
		}
		a[up], a[i] = a[i], a[up]
		i = up
	}
}

func (h *timeHeap) pop() {
	a := *h
	n := len(a) - 1
	a[0] = a[n]
	a = a[:n]
	*h = a
	for i := 0; ; {
		down := 2*i + 1
		if down >= n {
			return
		}
		if down+1 < n && a[down+1] < a[down] {
			down++
		}
		if a[i] <= a[down] {
			return
		}
		a[i], a[down] = a[down], a[i]
		i = down
	}
}
