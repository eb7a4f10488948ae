package rquic

// queue is first in, first out. It allocates only to grow.
type queue[T any] struct {
	items []T
	taken int // of items, from the front
}

func (q *queue[T]) add(item T) { q.items = append(q.items, item) }

func (q *queue[T]) length() int { return len(q.items) - q.taken }

// takeLast takes back the item that was added last, if there is one.
func (q *queue[T]) takeLast() {
	if q.length() > 0 {
		q.items = q.items[:len(q.items)-1]
	}
}

func (q *queue[T]) take() (item T, ok bool) {
	if q.taken == len(q.items) {
		return item, false
	}
	item = q.items[q.taken]
	q.taken++
	if q.taken == len(q.items) {
		q.items, q.taken = q.items[:0], 0
	} else if q.taken >= 64 && 2*q.taken >= len(q.items) {
		q.items, q.taken = q.items[:copy(q.items, q.items[q.taken:])], 0
	}
	return item, true
}
