package coding

import (
	"math/rand/v2"

	"github.com/fecbench/fecbench/quic-impls/rquic/internal/header"
)

// XOR adds to every generation one coded symbol, the exclusive or of its source symbols: all coefficients
// are 1, and are not listed. One loss in a generation can be recovered; two can where generations overlap.
type XOR struct{}

func (XOR) Kind() header.Kind             { return header.CodedXOR }
func (XOR) Redundancies() int             { return 1 }
func (XOR) NewEncoder(*rand.Rand) Encoder { return &linearEncoder{rows: make([]row, 1)} }
func (XOR) NewDecoder() Decoder           { return newLinearDecoder(false) }
