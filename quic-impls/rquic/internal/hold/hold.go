// Package hold is the receiver buffer of rQUIC: it delays source packets that
// arrived after a gap, so that QUIC doesn't report a loss that a coded packet
// may still mend. A packet leaves it (Zverev et al., IEEE Access 2021, §III-B1)
//
//   - at once, when the packet before it has been released;
//   - at once, when it is the first of all, since nothing shows that another one is missing;
//   - when 3 packets of newer generations have arrived, since its generation must then be over;
//   - when it has waited for the buffer timeout (BTO).
//
// (Unprotected packets, the paper's remaining rule, never enter the buffer.)
// Packets leave in the order of their ids, which don't wrap here. A packet whose id is behind the next expected one is
// late, and is released at once; so are the first of more than 127 packets.
package hold

import (
	"cmp"
	"slices"
	"time"
)

// newerPackets is the number of packets of newer generations that end the wait for
// an older one: QUIC's kPacketThreshold (RFC 9002, §6.1.1).
const newerPackets = 3

// maxHeld is the number of packets that are held at most.
const maxHeld = 127

// Buffer holds packets of type T. It reads no clock: the time is always given.
type Buffer[T any] struct {
	timeout time.Duration
	started bool
	next    int64     // id that will be released next in order
	held    []held[T] // ids ahead of next, in order
}

type held[T any] struct {
	id, generation int64
	arrival        time.Time
	newer          int // packets of newer generations that arrived since
	packet         T
}

// New returns an empty buffer. A timeout of 0 holds nothing.
func New[T any](timeout time.Duration) *Buffer[T] { return &Buffer[T]{timeout: timeout} }

// SetTimeout changes the timeout, also of the packets that are held.
func (b *Buffer[T]) SetTimeout(timeout time.Duration) { b.timeout = timeout }

// Empty reports whether nothing is held.
func (b *Buffer[T]) Empty() bool { return len(b.held) == 0 }

// Receive takes a source packet from the network and appends to released the packets that leave the buffer.
func (b *Buffer[T]) Receive(now time.Time, generation, id int64, packet T, released []T) []T {
	released = b.Insert(now, generation, id, packet, released)
	last := -1
	for i := range b.held {
		if generation > b.held[i].generation {
			if b.held[i].newer++; b.held[i].newer >= newerPackets {
				last = i
			}
		}
	}
	return b.releaseThrough(last, released)
}

// Insert takes a recovered packet to its place and appends to released the packets that leave the buffer.
func (b *Buffer[T]) Insert(now time.Time, generation, id int64, packet T, released []T) []T {
	if !b.started {
		b.started, b.next = true, id
	}
	if b.Passed(id) {
		return append(released, packet)
	}
	place, twice := slices.BinarySearchFunc(b.held, id, func(h held[T], id int64) int { return cmp.Compare(h.id, id) })
	if twice {
		return append(released, packet)
	}
	b.held = slices.Insert(b.held, place, held[T]{id: id, generation: generation, arrival: now, packet: packet})
	if len(b.held) > maxHeld {
		released = b.releaseThrough(0, released)
	}
	return b.Expire(now, b.releaseConsecutive(released))
}

// Retreat makes the place after an id the next one again, if those behind it went to packets that had no right to them.
func (b *Buffer[T]) Retreat(id int64) {
	if b.started {
		b.next = min(b.next, id+1)
	}
}

// Held is the number of packets that are held.
func (b *Buffer[T]) Held() int { return len(b.held) }

// Passed reports whether the place of an id in the order is gone already.
func (b *Buffer[T]) Passed(id int64) bool { return b.started && id < b.next }

// Expire appends to released the packets that have waited for the timeout, and all that precede them.
func (b *Buffer[T]) Expire(now time.Time, released []T) []T {
	last := -1
	for i := range b.held {
		if now.Sub(b.held[i].arrival) >= b.timeout {
			last = i
		}
	}
	return b.releaseThrough(last, released)
}

// ReleaseAll appends to released all packets that are held.
func (b *Buffer[T]) ReleaseAll(released []T) []T { return b.releaseThrough(len(b.held)-1, released) }

// Deadline is the time at which Expire has to be called; false when nothing is held.
func (b *Buffer[T]) Deadline() (time.Time, bool) {
	var earliest time.Time
	for i := range b.held {
		if arrival := b.held[i].arrival; i == 0 || arrival.Before(earliest) {
			earliest = arrival
		}
	}
	return earliest.Add(b.timeout), len(b.held) > 0
}

func (b *Buffer[T]) releaseThrough(last int, released []T) []T {
	for _, h := range b.held[:last+1] {
		released = append(released, h.packet)
		b.next = h.id + 1
	}
	b.held = slices.Delete(b.held, 0, last+1)
	return b.releaseConsecutive(released)
}

func (b *Buffer[T]) releaseConsecutive(released []T) []T {
	n := 0
	for n < len(b.held) && b.held[n].id == b.next {
		released = append(released, b.held[n].packet)
		b.next++
		n++
	}
	b.held = slices.Delete(b.held, 0, n)
	return released
}
