package rquic

import (
	"math/rand/v2"
	"testing"

	"github.com/fecbench/fecbench/quic-impls/rquic/internal/header"
)

// wire is a source packet's header of whole numbers.
func wire(id, generation int64) header.Header {
	return header.Header{Kind: header.Source, ID: uint8(id), Generation: uint8(generation), Size: 1}
}

// Whole numbers come back from 8 bits, whatever the size of the generations, after bursts of up to 255 losses or 127
// generations, and for packets that come late by as much.
func TestIDsAndGenerationsAreUnwrappedAcrossLossesAndReordering(t *testing.T) {
	for _, size := range []int64{1, 2, 9, 63} {
		random := rand.New(rand.NewPCG(uint64(size), 1))
		first := random.Int64N(1000)
		var o order
		offset, _ := o.source(wire(first, first/size))
		offset -= first
		newest := first
		for range 10_000 {
			id := newest - random.Int64N(min(255, 127*size, newest-first+1))
			if random.IntN(3) > 0 {
				id = newest + 1 + random.Int64N(min(255, 127*size))
			}
			got, generations := o.source(wire(id, id/size))
			if got-offset != id || (generations.Last-id/size)%256 != 0 || generations.First != generations.Last {
				t.Fatalf("generations of %d, newest %d: %d became %d of %+v", size, newest, id, got-offset, generations)
			}
			newest = max(newest, id)
			if last, generation, ok := o.coded(wire(newest, newest/size)); !ok || last-offset != newest || generation != o.generation {
				t.Fatalf("a coded packet of %d became one of %d, %d", newest, last-offset, generation)
			}
		}
	}
}

func TestASourcePacketSaysInWhichGenerationsItIs(t *testing.T) {
	var o order
	h := wire(5, 9)
	h.Size = 3
	if _, generations := o.source(h); generations.Last-generations.First != 2 || uint8(generations.Last) != 9 {
		t.Errorf("%+v", generations)
	}
}

func TestACodedPacketBeforeAnySourcePacketIsOfNoUse(t *testing.T) {
	var o order
	if _, _, ok := o.coded(wire(1, 1)); ok {
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
