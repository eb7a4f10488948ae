package runtime

import "unsafe"

// freeAssociation frees what removespecial has taken from an object that belongs to a bubble no more: Go drops it, which loses
// 32 bytes for each sync.WaitGroup that has ended: some 200 a trial.
func freeAssociation(s *special) {
	if s == nil {
		return
	}
	lock(&mheap_.speciallock)
	mheap_.specialBubbleAlloc.free(unsafe.Pointer(s))
	unlock(&mheap_.speciallock)
}
