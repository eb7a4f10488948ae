package runtime

// draws counts what was drawn in the newest bubble.
var draws struct {
	bubble uint64
	n      uint32
}

// drawInBubble takes the place of cheaprand for the order of timers of one instant: they fire in the order in which they
// were set, and that is the same in every bubble.
func drawInBubble() uint32 {
	if newest := bubbleGen.Load(); newest != draws.bubble {
		draws.bubble, draws.n = newest, 0
	}
	draws.n++
	return draws.n
}

// drawBelowInBubble takes the place of cheaprandn for the order in which select looks at its cases: as even, and the same in
// every bubble.
func drawBelowInBubble(n uint32) uint32 {
	if getg().bubble == nil {
		return cheaprandn(n)
	}
	z := uint64(drawInBubble()) * 0x9E3779B97F4A7C15 // SplitMix64
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return uint32((z >> 32) * uint64(n) >> 32)
}
