package rquic

import (
	"math/rand/v2"
	"testing"

	"github.com/fecbench/fecbench/quic-impls/rquic/internal/header"
)

// stretches groups packets: with an overlap φ, each generation is φ stretches of as many packets, and one ends with each
// stretch. Those of φ = 1 are the generations.
type stretches struct{ packets, overlap int64 }

// source is the header of a source packet, and the newest of its generations.
func (s stretches) source(id int64) (h header.Header, generation int64) {
	generation = id/s.packets + s.overlap - 1
	return header.Header{Kind: header.Source, ID: uint8(id), Generation: uint8(generation), Size: uint8(s.overlap)}, generation
}

// coded is the header of a coded packet of the generation that ends with a packet's stretch, and what it says.
func (s stretches) coded(id int64) (h header.Header, last, generation int64) {
	generation = id / s.packets
	last = (generation+1)*s.packets - 1
	return header.Header{Kind: header.CodedXOR, ID: uint8(last), Generation: uint8(generation)}, last, generation
}

// Whole numbers come back from 8 bits, whatever the size of the generations and their overlap, after bursts of up to 255
// losses or 120 generations, and for packets, coded ones too, that come late by as much.
func TestIDsAndGenerationsAreUnwrappedAcrossLossesAndReordering(t *testing.T) {
	for _, s := range []stretches{{1, 1}, {2, 1}, {9, 1}, {63, 1}, {1, 3}, {2, 3}, {9, 3}, {21, 3}} {
		random := rand.New(rand.NewPCG(uint64(s.packets), 1))
		reach := min(255, 120*s.packets)
		first := random.Int64N(1000)
		var o order
		h, firstGeneration := s.source(first)
		offset, generations := o.source(h)
		offset -= first
		offsetOfGenerations := generations.Last - firstGeneration
		newest := first
		for range 10_000 {
			id := newest - random.Int64N(min(reach, newest-first+1))
			if random.IntN(3) > 0 {
				id = newest + 1 + random.Int64N(reach)
			}
			h, generation := s.source(id)
			got, generations := o.source(h)
			if got-offset != id || generations.Last-offsetOfGenerations != generation || generations.Last-generations.First != s.overlap-1 {
				t.Fatalf("%+v, newest %d: %d became %d of %+v", s, newest, id, got-offset, generations)
			}
			newest = max(newest, id)
			behind, ahead := random.Int64N(min(reach, newest-first+1)), 1+random.Int64N(max(reach-s.packets, 1))
			for _, member := range []int64{newest, newest - behind, newest + ahead} {
				h, last, generation := s.coded(member)
				gotLast, gotGeneration, ok := o.coded(h)
				if gotLast-offset != last || gotGeneration-offsetOfGenerations != generation || !ok {
					t.Fatalf("%+v, newest %d: a coded packet of %d, %d became one of %d, %d",
						s, newest, last, generation, gotLast-offset, gotGeneration-offsetOfGenerations)
				}
			}
		}
	}
}

func TestASourcePacketSaysInWhichGenerationsItIs(t *testing.T) {
	var o order
	h := header.Header{Kind: header.Source, ID: 5, Generation: 9, Size: 3}
	if _, generations := o.source(h); generations.Last-generations.First != 2 || uint8(generations.Last) != 9 {
		t.Errorf("%+v", generations)
	}
}

func TestACodedPacketBeforeAnySourcePacketIsOfNoUse(t *testing.T) {
	var o order
	if _, _, ok := o.coded(header.Header{ID: 1, Generation: 1}); ok {
		t.Error("it has a place")
	}
}

// Whatever comes, ids and generations stay whole numbers from 0: the decoder takes negative ones for none.
func TestNoHeaderLeadsBelowZero(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 9))
	for range 1000 {
		var o order
		for range 20 {
			h := header.Header{ID: uint8(random.Uint32()), Generation: uint8(random.Uint32()), Size: 1}
			if id, generations := o.source(h); id < 0 || generations.Last < 0 {
				t.Fatalf("%+v became %d of %+v", h, id, generations)
			}
		}
	}
}
