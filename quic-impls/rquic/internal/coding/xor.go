package coding

import (
	"crypto/subtle"
	"math"
	"math/bits"

	"github.com/fecbench/fecbench/quic-impls/rquic/internal/header"
)

// XOR adds to every generation of source symbols one repair symbol, their exclusive or. One loss in a
// generation can be recovered, two cannot. A shorter symbol counts as if zeros followed it.
type XOR struct {
	// GenerationSize is the number of source symbols in a full generation, 1 to header.MaxGenerationSize.
	GenerationSize int
}

// XORWithRate returns the XOR code whose rate k/(k+1) has the k nearest to rate/(1-rate), 1 <= k <= 63.
func XORWithRate(rate float64) XOR {
	k := math.Round(rate / (1 - rate))
	return XOR{GenerationSize: int(min(max(k, 1), header.MaxGenerationSize))}
}

func (x XOR) Kind() header.Kind   { return header.CodedXOR }
func (x XOR) NewEncoder() Encoder { return &xorEncoder{generationSize: x.GenerationSize} }
func (x XOR) NewDecoder() Decoder { return &xorDecoder{generations: map[uint8]*xorGeneration{}} }

type xorEncoder struct {
	generationSize int
	size           int
	sum            []byte
}

func (e *xorEncoder) Add(symbol []byte) bool {
	e.sum = addTo(e.sum, symbol)
	e.size++
	return e.size >= e.generationSize
}

func (e *xorEncoder) Size() int { return e.size }

func (e *xorEncoder) AppendRepair(b []byte) []byte {
	b = append(b, e.sum...)
	e.sum, e.size = e.sum[:0], 0
	return b
}

// xorGenerationsKept is the number of generations in which a decoder still looks for losses. Nothing but
// reordering brings packets of any but the newest two, so a few are plenty.
const xorGenerationsKept = 8

type xorDecoder struct {
	generations map[uint8]*xorGeneration // at most xorGenerationsKept, by number
	newest      uint8
}

// xorGeneration is what a decoder knows of a generation: the sum of all symbols that
// arrived, source and repair, so that the last missing one is what remains.
type xorGeneration struct {
	sum      []byte
	arrived  idSet
	repaired bool  // the repair symbol is in the sum
	last     uint8 // id of the last source symbol, known with the repair symbol
	size     uint8
}

func (d *xorDecoder) Source(generation, id uint8, symbol []byte) []Recovered {
	g := d.generation(generation)
	if g == nil || g.arrived.has(id) {
		return nil
	}
	g.arrived.add(id)
	g.sum = addTo(g.sum, symbol)
	return g.recover(generation)
}

func (d *xorDecoder) Repair(generation, id, size uint8, payload []byte) []Recovered {
	g := d.generation(generation)
	if g == nil || g.repaired {
		return nil
	}
	g.repaired, g.last, g.size = true, id, size
	g.sum = addTo(g.sum, payload)
	return g.recover(generation)
}

// generation returns the state of a generation, or nil when it is too old. Numbers wrap at 256, so what is behind
// the newest by less than 128 is older, and a number comes back as a new generation only once the old one is gone.
func (d *xorDecoder) generation(number uint8) *xorGeneration {
	if ahead := int8(number - d.newest); len(d.generations) == 0 || ahead > 0 {
		d.newest = number
		for kept := range d.generations {
			if d.newest-kept >= xorGenerationsKept {
				delete(d.generations, kept)
			}
		}
	} else if ahead <= -xorGenerationsKept {
		return nil
	}
	g := d.generations[number]
	if g == nil {
		g = &xorGeneration{}
		d.generations[number] = g
	}
	return g
}

// recover returns the one missing symbol of a generation. A generation whose arrived symbols aren't
// all among those that its repair symbol protects recovers nothing.
func (g *xorGeneration) recover(number uint8) []Recovered {
	if !g.repaired {
		return nil
	}
	missing, missingCount := uint8(0), 0
	for i := range g.size {
		if id := g.last - i; !g.arrived.has(id) {
			missing = id
			missingCount++
		}
	}
	if missingCount != 1 || g.arrived.count() != int(g.size)-1 {
		return nil
	}
	g.arrived.add(missing)
	symbol := g.sum
	g.sum = nil
	return []Recovered{{Generation: number, ID: missing, Symbol: symbol}}
}

// addTo adds symbol to sum in GF(2), and returns sum, which grows to the longer of both.
func addTo(sum, symbol []byte) []byte {
	if n := len(sum); len(symbol) > n {
		subtle.XORBytes(sum, sum, symbol)
		return append(sum, symbol[n:]...)
	}
	subtle.XORBytes(sum, sum, symbol)
	return sum
}

// idSet is a set of packet ids.
type idSet [4]uint64

func (s *idSet) add(id uint8)      { s[id/64] |= 1 << (id % 64) }
func (s *idSet) has(id uint8) bool { return s[id/64]&(1<<(id%64)) != 0 }

func (s *idSet) count() int {
	n := 0
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}
