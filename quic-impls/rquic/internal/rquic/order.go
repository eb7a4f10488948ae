package rquic

import (
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/coding"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/header"
)

// order turns the 8-bit ids and generations of the wire into whole numbers, so that what is obsolete shows by its age
// (Zverev et al., IEEE Access 2021, §V-B). Both grow together: the generation tells whether an id is ahead of the newest
// or behind it, even after a burst of up to 255 losses.
type order struct {
	started                 bool
	id, generation, overlap int64 // of the newest source packet: φ is how many generations it belongs to
}

// source returns the id and the generations of a source packet.
func (o *order) source(h header.Header) (id int64, generations coding.Range) {
	if !o.started {
		o.started, o.id, o.generation = true, 256+int64(h.ID), 256+int64(h.Generation) // none will be negative
	}
	ahead := int64(int8(h.Generation - uint8(o.generation)))
	generation := o.generation + ahead
	switch {
	case ahead > 0:
		id = o.id + 1 + int64(h.ID-uint8(o.id)-1)
	case ahead < 0:
		id = o.id - 1 - int64(uint8(o.id)-h.ID-1)
	default:
		id = o.id + int64(int8(h.ID-uint8(o.id)))
	}
	if id >= o.id {
		o.overlap = int64(h.Size)
	}
	o.move(id, generation)
	return id, coding.Range{First: generation - int64(h.Size) + 1, Last: generation}
}

// move makes a source packet the newest, unless it is behind it.
func (o *order) move(id, generation int64) {
	o.id, o.generation = max(o.id, id), max(o.generation, generation)
}

// coded returns the last id and the generation that a coded packet protects; false before any source packet came,
// when nothing can be recovered.
func (o *order) coded(h header.Header) (last, generation int64, ok bool) {
	ahead := int64(int8(h.Generation - uint8(o.generation)))
	highest := o.id + header.MaxGenerationSize // φ above 1: the generation may end behind packets that haven't come
	switch {
	case ahead > 0: // none of its packets has come
		highest = o.id + 256
	case ahead <= -o.overlap: // it ended before the newest packet's generations began
		highest = o.id - 1
	}
	return highest - int64(uint8(highest)-h.ID), o.generation + ahead, o.started
}
