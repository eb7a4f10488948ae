package coding

import "math/rand/v2"

// Generations groups source symbols into overlapping generations (§II-C, §IV-A). At any time as many are open as a
// symbol belongs to; when the oldest is complete, a new one takes its place. The first ones are shorter, so that
// coded symbols come at equal distances from the beginning (§II-C: g_i = i·g/φ).
type Generations struct {
	spacing int // source symbols between generations' ends, at a code rate of 1
	maximum int
	open    []openGeneration // the oldest first
	oldest  uint8            // its number, as on the wire
}

type openGeneration struct {
	encoder Encoder
	share   int // how many distances between coded symbols long it becomes: 1 to φ
}

// NewGenerations begins with the first generation. A generation has at most maximum source symbols. Coefficients are the same
// each time: the decoder reads them, and trials can be repeated.
func NewGenerations(code Code, overlap, maximum int) *Generations {
	coefficients := rand.New(rand.NewPCG(0, 0))
	g := &Generations{spacing: max(code.Redundancies(), 1), maximum: maximum, open: make([]openGeneration, overlap)}
	for i := range g.open {
		g.open[i] = openGeneration{encoder: code.NewEncoder(coefficients), share: i + 1}
	}
	return g
}

// Overlap is the number of generations that a source symbol belongs to (φ).
func (g *Generations) Overlap() int { return len(g.open) }

// Newest is the number of the newest generation that the next source symbol belongs to.
func (g *Generations) Newest() uint8 { return g.oldest + uint8(len(g.open)) - 1 }

// Add adds a source symbol to all open generations.
func (g *Generations) Add(symbol []byte) {
	for _, open := range g.open {
		open.encoder.Add(symbol)
	}
}

// Oldest is the generation that is completed next: its number, and how many source symbols it has.
func (g *Generations) Oldest() (number uint8, size int) { return g.oldest, g.open[0].encoder.Size() }

// Complete reports whether the oldest generation is complete at a code rate Q, the number of source symbols for each
// coded one: equation (3).
func (g *Generations) Complete(rate float64) bool {
	size := g.open[0].encoder.Size()
	limit := rate * float64(g.spacing*g.open[0].share)
	return size > 0 && (float64(size+1) > limit || size >= g.maximum)
}

// AppendRepair appends a coded payload of the oldest generation to b.
func (g *Generations) AppendRepair(b []byte, index int) []byte {
	return g.open[0].encoder.AppendRepair(b, index)
}

// Next puts a new generation in the place of the oldest.
func (g *Generations) Next() {
	encoder := g.open[0].encoder
	encoder.Reset()
	copy(g.open, g.open[1:])
	g.open[len(g.open)-1] = openGeneration{encoder: encoder, share: len(g.open)}
	g.oldest++
}

// Restart makes the open generations, which are empty, as short as the first ones were.
func (g *Generations) Restart() {
	for i := range g.open {
		g.open[i].share = i + 1
	}
}
