package coding

import (
	"math/rand/v2"

	"github.com/fecbench/fecbench/quic-impls/rquic/internal/header"
)

// RLC is systematic random linear coding over GF(2^8): every coded symbol is a sum of the source symbols with random
// coefficients from 1 to 255, which are listed in front of it (§V-A1). As many losses can be recovered as
// there are coded symbols, but for one case in some 255.
type RLC struct {
	Coded int // symbols per generation
}

func (RLC) Kind() header.Kind   { return header.CodedRLC }
func (c RLC) Redundancies() int { return c.Coded }

func (c RLC) NewEncoder(coefficients *rand.Rand) Encoder {
	return &linearEncoder{rows: make([]row, c.Coded), random: coefficients}
}

func (RLC) NewDecoder() Decoder { return newLinearDecoder(true) }
