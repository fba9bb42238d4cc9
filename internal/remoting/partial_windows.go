package remoting

// partialWrites says whether a write that a deadline ended tells for certain
// how many bytes went out. Cancelled overlapped sends do not, so here only the
// flusher writes, and a stalled peer loses its connection.
const partialWrites = false
