package coding

import (
	"math"
	"slices"
	"testing"
)

// sizes returns the sizes of the first generations that complete, and the numbers of packets after which they did.
func sizes(g *Generations, rate float64, packets int) (sizes, ends []int) {
	for n := 1; n <= packets; n++ {
		g.Add([]byte{1})
		for g.Complete(rate) {
			_, size := g.Oldest()
			sizes, ends = append(sizes, size), append(ends, n)
			g.Next()
		}
	}
	return sizes, ends
}

// Fig. 1 of the paper: 15 packets, two generations of 8 that overlap, with 2 coded symbols each, so Q = 2.
func TestTheGenerationsOfThePapersFigure1(t *testing.T) {
	got, ends := sizes(NewGenerations(RLC{Coded: 2}, 2, 63), 2, 15)
	if !slices.Equal(got, []int{4, 8, 8}) || !slices.Equal(ends, []int{4, 8, 12}) {
		t.Errorf("sizes %v after %v packets", got, ends)
	}
}

// Equation (1), g = Q·r·φ, and the first ones i·g/φ: coded symbols come at the distance Q·r from the beginning.
func TestGenerationsHaveTheSizeOfEquation1(t *testing.T) {
	for rate := 1.0; rate <= 21; rate++ {
		for coded := 1; coded <= 3; coded++ {
			for overlap := 1; overlap <= 3; overlap++ {
				full := int(rate) * coded * overlap
				if full > 63 {
					continue
				}
				got, ends := sizes(NewGenerations(RLC{Coded: coded}, overlap, 63), rate, 400)
				for i, size := range got {
					if right := min(i+1, overlap) * full / overlap; size != right || ends[i] != (i+1)*full/overlap {
						t.Fatalf("Q %v, r %d, φ %d: generation %d has %d after %d, right is %d", rate, coded, overlap, i, size, ends[i], right)
					}
				}
			}
		}
	}
}

func TestAFractionalRateIsNeverExceeded(t *testing.T) {
	for rate := 0.3; rate < 60; rate += 0.7 {
		for _, overlap := range []int{1, 2} {
			got, _ := sizes(NewGenerations(XOR{}, overlap, 63), rate, 1000)
			for _, size := range got[overlap:] {
				limit := rate * float64(overlap)
				if right := int(max(1, math.Floor(min(limit, 63)))); size != right {
					t.Fatalf("Q %v, φ %d: %d, right is %d", rate, overlap, size, right)
				}
			}
		}
	}
}

func TestAGenerationEndsAtItsMaximum(t *testing.T) {
	got, _ := sizes(NewGenerations(XOR{}, 1, 10), 1e9, 35)
	if !slices.Equal(got, []int{10, 10, 10}) {
		t.Error(got)
	}
}

func TestAfterARestartTheFirstGenerationsAreShortAgainAndNumbersGoOn(t *testing.T) {
	g := NewGenerations(XOR{}, 3, 63)
	first, _ := sizes(g, 5, 27)
	for range 3 {
		g.Next()
	}
	g.Restart()
	number, size := g.Oldest()
	again, _ := sizes(g, 5, 27)
	if size != 0 || int(number) != len(first)+3 || !slices.Equal(first, again) {
		t.Errorf("%v, then number %d with %d and %v", first, number, size, again)
	}
}
