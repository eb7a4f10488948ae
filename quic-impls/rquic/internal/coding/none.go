package coding

import (
	"math/rand/v2"

	"github.com/fecbench/fecbench/quic-impls/rquic/internal/header"
)

// None is a code without coded symbols: source symbols have ids and generations, as long as if there were one coded symbol
// for each. It shows the other costs of an erasure code, above all the receiver's buffer, apart from the recovery.
type None struct{}

func (None) Kind() header.Kind             { return header.Source }
func (None) Redundancies() int             { return 0 }
func (None) NewEncoder(*rand.Rand) Encoder { return new(count) }
func (None) NewDecoder() Decoder           { return nothing{} }

// count is the number of source symbols of a generation that nothing protects.
type count int

func (c *count) Add([]byte)                          { *c++ }
func (c *count) Size() int                           { return int(*c) }
func (c *count) AppendRepair(b []byte, _ int) []byte { return b }
func (c *count) Reset()                              { *c = 0 }

// nothing is recovered.
type nothing struct{}

func (nothing) Source(int64, Range, []byte) []Recovered      { return nil }
func (nothing) Forget(int64)                                 {}
func (nothing) Repair(int64, int64, int, []byte) []Recovered { return nil }
