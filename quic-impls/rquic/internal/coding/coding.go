// Package coding has the erasure codes of rQUIC, which know nothing of QUIC or
// of time: symbols in, repair symbols and recovered symbols out. A code groups
// source symbols in generations and adds redundancy to each (Zverev et al.,
// IEEE Access 2021, §IV-A).
package coding

import "github.com/fecbench/fecbench/quic-impls/rquic/internal/header"

// Code is an erasure code with its parameters.
type Code interface {
	// Kind marks the coded packets of this code on the wire.
	Kind() header.Kind
	NewEncoder() Encoder
	NewDecoder() Decoder
}

// Encoder protects one generation after another.
type Encoder interface {
	// Add protects the next source symbol and reports whether the open generation is now complete.
	Add(symbol []byte) (complete bool)
	// Size is the number of source symbols in the open generation.
	Size() int
	// AppendRepair appends the coded payload of the open generation (its coefficients, where the code has some, and
	// the repair symbol) to b, and opens the next generation.
	AppendRepair(b []byte) []byte
}

// Decoder recovers source symbols. It keeps a bounded number of recent generations, drops older ones by age, and
// treats whatever doesn't fit together as lost; it keeps no view of the slices that it is given.
type Decoder interface {
	// Source takes a source symbol that arrived.
	Source(generation, id uint8, symbol []byte) []Recovered
	// Repair takes the coded payload of a generation of size source symbols, the last of which is id.
	Repair(generation, id, size uint8, payload []byte) []Recovered
}

// Recovered is a source symbol that had been lost. Symbol may be followed by zeros that aren't part of it.
type Recovered struct {
	Generation, ID uint8
	Symbol         []byte
}
