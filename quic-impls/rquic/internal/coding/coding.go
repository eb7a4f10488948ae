// Package coding has the erasure codes of rQUIC, which know nothing of QUIC or of time: symbols in, coded payloads and
// recovered symbols out (Zverev et al., IEEE Access 2021, §II-C and §IV-A). Source symbols have consecutive ids and are
// grouped in generations; every generation is protected by coded symbols. Ids and generations are whole numbers
// here, of which the wire has the lowest 8 bits.
package coding

import (
	"math/rand/v2"

	"github.com/fecbench/fecbench/quic-impls/rquic/internal/header"
)

// Code is an erasure code with its parameters.
type Code interface {
	// Kind marks the coded packets of this code on the wire.
	Kind() header.Kind
	// Redundancies is the number of coded symbols per generation (r); 0 for None.
	Redundancies() int
	// NewEncoder returns an encoder that draws its coefficients, if it has any, from a generator. Generations that overlap share
	// one, lest a symbol has the same coefficients in all of them, and their coded symbols say the same twice.
	NewEncoder(coefficients *rand.Rand) Encoder
	NewDecoder() Decoder
}

// Encoder protects one generation at a time. It keeps no view of the slices that it is given.
type Encoder interface {
	// Add protects the next source symbol. A shorter symbol counts as if zeros followed it.
	Add(symbol []byte)
	// Size is the number of source symbols that were added.
	Size() int
	// AppendRepair appends a coded payload to b: coefficients, where the code lists them, and the coded
	// symbol. The index is 0 to Redundancies-1.
	AppendRepair(b []byte, index int) []byte
	// Reset begins another generation.
	Reset()
}

// Decoder recovers source symbols. Its memory is bounded for any input: it looks for losses among the newest Window
// ids, drops older ones by their age, and treats whatever doesn't fit together as lost. Its result is valid until the
// next call.
type Decoder interface {
	// Source takes a source symbol that arrived.
	Source(id int64, generations Range, symbol []byte) []Recovered
	// Forget takes back that a symbol is known, since it was forged, and all that may have been concluded from it.
	Forget(id int64)
	// Repair takes the coded payload of a generation of size source symbols, the last of which is id.
	Repair(generation, id int64, size int, payload []byte) []Recovered
}

// Window is the number of ids, up to the newest, among which a decoder looks for losses.
const Window = 128

// Range has the generations that a source symbol belongs to, both included.
type Range struct{ First, Last int64 }

// Recovered is a source symbol that had been lost. Symbol may be followed by zeros that aren't part of it.
type Recovered struct {
	Generation, ID int64
	Symbol         []byte
}
