package coding

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fecbench/fecbench/quic-impls/rquic/internal/header"
)

// codes are the codes for which every law holds.
var codes = map[string]Code{"XOR": XOR{}, "RLC": RLC{Coded: 1}, "RLC with 3 coded symbols": RLC{Coded: 3}}

// arrival is a symbol as the decoder gets it.
type arrival struct {
	repair     bool
	generation int64
	id         int64
	size       int
	symbol     []byte
}

func (a arrival) arrive(d Decoder) []Recovered {
	if a.repair {
		return d.Repair(a.generation, a.id, a.size, a.symbol)
	}
	return d.Source(a.id, Range{a.generation, a.generation}, a.symbol)
}

// generation encodes size random symbols of different lengths, the first with a given id.
func generation(random *rand.Rand, code Code, encoder Encoder, number, first int64, size int) (sources, repairs []arrival) {
	for i := range size {
		symbol := make([]byte, 1+random.IntN(40))
		for j := range symbol {
			symbol[j] = byte(random.Uint32())
		}
		encoder.Add(symbol)
		sources = append(sources, arrival{generation: number, id: first + int64(i), symbol: symbol})
	}
	for i := range code.Redundancies() {
		repairs = append(repairs, arrival{true, number, first + int64(size) - 1, size, encoder.AppendRepair(nil, i)})
	}
	encoder.Reset()
	return sources, repairs
}

// isSymbol reports whether a recovered symbol is the right one, zeros behind it aside.
func isSymbol(recovered, right []byte) bool {
	return len(recovered) >= len(right) && bytes.Equal(recovered[:len(right)], right) &&
		len(bytes.Trim(recovered[len(right):], "\x00")) == 0
}

// decode gives a decoder what arrives, and returns what was recovered by id; twice is an error.
func decode(t *testing.T, d Decoder, arrivals []arrival) map[int64][]byte {
	t.Helper()
	recovered := map[int64][]byte{}
	for _, a := range arrivals {
		for _, r := range a.arrive(d) {
			if recovered[r.ID] != nil {
				t.Fatalf("%d was recovered twice", r.ID)
			}
			recovered[r.ID] = slices.Clone(r.Symbol)
		}
	}
	return recovered
}

func TestAnySingleLossIsRecoveredInAnyOrderOfArrival(t *testing.T) {
	for name, code := range codes {
		random := rand.New(rand.NewPCG(1, 2))
		for size := 1; size <= header.MaxGenerationSize; size++ {
			for lost := range size {
				sources, repairs := generation(random, code, code.NewEncoder(random), 7, int64(random.IntN(1000)), size)
				arrivals := slices.Concat(repairs, sources[:lost], sources[lost+1:])
				random.Shuffle(len(arrivals), func(i, j int) { arrivals[i], arrivals[j] = arrivals[j], arrivals[i] })
				recovered := decode(t, code.NewDecoder(), arrivals)
				if recovered[sources[lost].id] == nil {
					t.Fatalf("%s, size %d: %d was not recovered", name, size, lost)
				}
				for _, source := range sources { // others may be recovered before they arrive
					if symbol := recovered[source.id]; symbol != nil && !isSymbol(symbol, source.symbol) {
						t.Fatalf("%s, size %d: recovered %x, right is %x", name, size, symbol, source.symbol)
					}
				}
			}
		}
	}
}

func TestWithXORTwoLossesOfAGenerationRecoverNothing(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for first := range 9 {
		for second := range first {
			sources, repairs := generation(random, XOR{}, XOR{}.NewEncoder(nil), 0, 250, 9)
			arrivals := slices.Concat(sources[:second], sources[second+1:first], sources[first+1:], repairs)
			if recovered := decode(t, XOR{}.NewDecoder(), arrivals); len(recovered) > 0 {
				t.Fatalf("lost %d and %d: recovered %v", first, second, recovered)
			}
		}
	}
}

// With random coefficients, r coded symbols recover r losses of their generation in all but about 1/255 of the cases, and
// never more.
func TestRLCRecoversAsManyLossesAsThereAreCodedSymbols(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	const rounds = 400
	for coded := 1; coded <= 8; coded++ {
		code := RLC{Coded: coded}
		encoder, failed := code.NewEncoder(random), 0
		for range rounds {
			size := coded + 1 + random.IntN(header.MaxGenerationSize-coded)
			sources, repairs := generation(random, code, encoder, 0, 100, size)
			random.Shuffle(size, func(i, j int) { sources[i], sources[j] = sources[j], sources[i] })
			arrivals := slices.Concat(sources[coded:], repairs)
			random.Shuffle(len(arrivals), func(i, j int) { arrivals[i], arrivals[j] = arrivals[j], arrivals[i] })
			recovered := decode(t, code.NewDecoder(), arrivals)
			if len(recovered) < coded {
				failed++
			}
			for id, symbol := range recovered {
				if i := slices.IndexFunc(sources, func(a arrival) bool { return a.id == id }); !isSymbol(symbol, sources[i].symbol) {
					t.Fatalf("%d of %d lost: %d was recovered as %x, right is %x", coded, size, id, symbol, sources[i].symbol)
				}
			}
			more := slices.Concat(sources[min(coded+2, size):], repairs)
			if recovered := decode(t, code.NewDecoder(), more); len(recovered) > coded {
				t.Fatalf("%d losses with %d coded symbols: recovered %v", coded+1, coded, recovered)
			}
		}
		if failed > rounds/50 {
			t.Errorf("%d coded symbols: %d of %d failed", coded, failed, rounds)
		}
	}
}

// A stretch between two coded symbols is shared by φ generations, which have φ·r coded symbols: so many losses of the stretch are
// recovered, as those of one generation are. It fails in about 1 of 255 cases.
func TestCodedSymbolsOfOverlappingGenerationsAreIndependent(t *testing.T) {
	for _, parameters := range []struct{ overlap, coded int }{{2, 1}, {2, 2}, {3, 1}, {3, 2}, {4, 1}} {
		code, random := RLC{Coded: parameters.coded}, rand.New(rand.NewPCG(13, 14))
		losses := parameters.overlap * parameters.coded
		rate := 2 * parameters.overlap // Q: a stretch has Q·r symbols
		const rounds = 200
		failed := 0
		for before := range rounds { // stretches before the one with losses
			generations := NewGenerations(code, parameters.overlap, header.MaxGenerationSize)
			decoder, number, recovered := code.NewDecoder(), int64(0), 0
			stretch := rate * parameters.coded
			lost := random.Perm(stretch)[:losses]
			for id := range int64(stretch * (before + parameters.overlap)) {
				symbol := make([]byte, 20)
				for i := range symbol {
					symbol[i] = byte(random.Uint32())
				}
				generations.Add(symbol)
				if at := int(id) - stretch*before; at < 0 || !slices.Contains(lost, at) {
					decoder.Source(id, Range{number, number + int64(parameters.overlap) - 1}, symbol)
				}
				for generations.Complete(float64(rate)) {
					_, size := generations.Oldest()
					for i := range code.Redundancies() {
						recovered += len(decoder.Repair(number, id, size, generations.AppendRepair(nil, i)))
					}
					generations.Next()
					number++
				}
			}
			if recovered < losses {
				failed++
			}
		}
		if failed > rounds/20 {
			t.Errorf("overlap %d, %d coded symbols: %d losses were not recovered in %d of %d rounds",
				parameters.overlap, parameters.coded, losses, failed, rounds)
		}
	}
}

func TestALongSymbolAmongShortOnesIsRecoveredWhole(t *testing.T) {
	for name, code := range codes {
		for long := range 5 {
			for lost := range 5 {
				encoder := code.NewEncoder(rand.New(rand.NewPCG(0, 0)))
				var arrivals []arrival
				var right []byte
				for i := range 5 {
					symbol := bytes.Repeat([]byte{byte(i + 1)}, 20)
					if i == long {
						symbol = bytes.Repeat([]byte{9}, 1200)
					}
					encoder.Add(symbol)
					if i == lost {
						right = symbol
					} else {
						arrivals = append(arrivals, arrival{id: int64(i), symbol: symbol})
					}
				}
				arrivals = append(arrivals, arrival{true, 0, 4, 5, encoder.AppendRepair(nil, 0)})
				if recovered := decode(t, code.NewDecoder(), arrivals); !isSymbol(recovered[int64(lost)], right) {
					t.Fatalf("%s, long %d, lost %d: recovered %v", name, long, lost, recovered)
				}
			}
		}
	}
}

// In a long stream with losses and reordering, every recovered packet is right, and none had arrived. Overlapping
// generations recover at least as much as each alone.
func TestWhateverIsRecoveredWasSentAndLost(t *testing.T) {
	for name, code := range codes {
		for _, overlap := range []int{1, 2, 3} {
			random := rand.New(rand.NewPCG(uint64(overlap), 8))
			generations := NewGenerations(code, overlap, header.MaxGenerationSize)
			decoder := code.NewDecoder()
			sent, arrived, recovered := map[int64][]byte{}, map[int64]bool{}, 0
			check := func(all []Recovered) {
				for _, r := range all {
					if arrived[r.ID] || !isSymbol(r.Symbol, sent[r.ID]) {
						t.Fatalf("%s, overlap %d: %d was recovered as %x, right is %x", name, overlap, r.ID, r.Symbol, sent[r.ID])
					}
					arrived[r.ID] = true
					recovered++
				}
			}
			var number int64
			var delayed []func()
			for id := range int64(5000) {
				symbol := make([]byte, 1+random.IntN(60))
				for i := range symbol {
					symbol[i] = byte(random.Uint32())
				}
				sent[id] = symbol
				belongs := Range{number, number + int64(overlap) - 1}
				arrive := func() {
					arrived[id] = true
					check(decoder.Source(id, belongs, symbol))
				}
				switch chance := random.Float64(); {
				case chance < 0.06:
				case chance < 0.1:
					delayed = append(delayed, arrive)
				default:
					arrive()
				}
				if len(delayed) > 0 && random.Float64() < 0.3 {
					late := delayed[0]
					delayed = delayed[1:]
					late()
				}
				generations.Add(symbol)
				for generations.Complete(8) {
					_, size := generations.Oldest()
					for i := range code.Redundancies() {
						if random.Float64() > 0.06 {
							check(decoder.Repair(number, id, size, generations.AppendRepair(nil, i)))
						}
					}
					generations.Next()
					number++
				}
			}
			if recovered < 150 {
				t.Errorf("%s, overlap %d: %d were recovered", name, overlap, recovered)
			}
		}
	}
}

func TestASourceSymbolThatComesTwiceCountsOnce(t *testing.T) {
	for name, code := range codes {
		random := rand.New(rand.NewPCG(11, 12))
		sources, repairs := generation(random, code, code.NewEncoder(random), 0, 0, 3)
		decoder := code.NewDecoder()
		recovered := decode(t, decoder, []arrival{sources[0], sources[0], sources[1], repairs[0]})
		if len(recovered) != 1 || !isSymbol(recovered[2], sources[2].symbol) {
			t.Fatalf("%s: recovered %v, right is %v", name, recovered, sources[2])
		}
		if recovered := decode(t, decoder, append(sources, repairs...)); len(recovered) > 0 {
			t.Errorf("%s: recovered %v once more", name, recovered)
		}
	}
}

func TestWhatIsOlderThanTheWindowIsDropped(t *testing.T) {
	for name, code := range codes {
		for _, ahead := range []int64{Window, 2*Window + 5} {
			random := rand.New(rand.NewPCG(7, 8))
			sources, repairs := generation(random, code, code.NewEncoder(random), 0, 0, 2)
			decoder := code.NewDecoder()
			arrivals := []arrival{sources[0], {generation: 9, id: 1 + ahead, symbol: []byte{1}}, repairs[0], sources[1]}
			if recovered := decode(t, decoder, arrivals); len(recovered) > 0 {
				t.Errorf("%s, %d ahead: recovered %v", name, ahead, recovered)
			}
			if equations := decoder.(*linearDecoder).equations; len(equations) > 0 {
				t.Errorf("%s, %d ahead: %d equations are kept", name, ahead, len(equations))
			}
		}
	}
}

func TestAnEquationIsForgottenWithItsOldestUnknown(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 9))
	sources, repairs := generation(random, XOR{}, XOR{}.NewEncoder(nil), 0, 0, 4)
	decoder := XOR{}.NewDecoder()
	arrivals := []arrival{sources[2], sources[3], repairs[0], {generation: 9, id: Window, symbol: []byte{1}}, sources[1]}
	if recovered := decode(t, decoder, arrivals); len(recovered) > 0 {
		t.Errorf("recovered %v", recovered)
	}
}

func TestACodedSymbolThatContradictsWhatArrivedRecoversNothing(t *testing.T) {
	for name, code := range codes {
		random := rand.New(rand.NewPCG(9, 10))
		sources, repairs := generation(random, code, code.NewEncoder(random), 1, 10, 4)
		repair := repairs[0]
		lies := map[string]arrival{
			"size 0":             {true, 1, repair.id, 0, repair.symbol},
			"size 64":            {true, 1, repair.id, 64, repair.symbol},
			"size 255":           {true, 1, repair.id, 255, repair.symbol},
			"an older last id":   {true, 1, repair.id - 200, 4, repair.symbol},
			"another generation": {true, 2, repair.id, 4, repair.symbol},
			"no payload":         {true, 1, repair.id, 4, nil},
			"no symbol":          {true, 1, repair.id, 4, []byte{1, 2, 3}[:min(3, 4*(code.Redundancies()-1))]},
		}
		for lie, a := range lies {
			decoder := code.NewDecoder()
			decode(t, decoder, sources[1:])
			if recovered := a.arrive(decoder); len(recovered) > 0 {
				t.Errorf("%s, %s: recovered %v", name, lie, recovered)
			}
		}
	}
}

// FuzzDecoderStaysBounded feeds a decoder with whatever: 5 bytes of header and up to 255 of symbol at a time. The
// equations must stay reduced, and their unknowns within the window.
func FuzzDecoderStaysBounded(f *testing.F) {
	f.Add(true, []byte{1, 0, 0, 0, 2, 7, 7, 2, 0, 1, 2, 2, 7, 7})
	f.Add(false, []byte{1, 0, 0, 0, 2, 7, 7, 2, 0, 2, 2, 2, 7, 6, 2, 0, 3, 4, 2, 9, 9})
	f.Add(true, bytes.Repeat([]byte{2, 200, 255, 63, 0}, 300))
	f.Add(true, slices.Concat(bytes.Repeat([]byte{2, 0, 5, 3, 5, 1, 2, 3, 4, 5}, 3), []byte{2, 0, 6, 3, 5, 9, 8, 7, 6, 5}))
	f.Add(true, bytes.Repeat([]byte{2, 1, 130, 2, 4, 0, 7, 9, 9, 1, 0, 131, 0, 3, 1, 1, 1}, 40))
	f.Fuzz(func(t *testing.T, listed bool, input []byte) {
		d := newLinearDecoder(listed)
		newest := int64(256)
		for len(input) > 5 {
			a := arrival{input[0]%2 == 0, int64(input[1]), newest + int64(int8(input[2])), int(input[3]), nil}
			n := min(int(input[4]), len(input)-5)
			a.symbol, input = input[5:5+n], input[5+n:]
			newest = max(newest, a.id)
			for _, r := range a.arrive(d) {
				if r.ID > d.newest || r.ID <= d.newest-Window || len(r.Symbol) > 255 {
					t.Fatalf("recovered %+v, newest is %d", r, d.newest)
				}
			}
		}
		reduced(t, d)
	})
}

// reduced checks the invariants of a decoder's equations.
func reduced(t *testing.T, d *linearDecoder) {
	t.Helper()
	if len(d.equations)+len(d.spare) > Window+1 {
		t.Fatal(fmt.Sprint(len(d.equations), " equations, ", len(d.spare), " spare"))
	}
	for _, e := range d.equations {
		for _, other := range d.equations {
			if e != other && e.unknown.has(other.pivot) {
				t.Fatal("an equation has the pivot of another")
			}
		}
		if !e.unknown.has(e.pivot) || e.unknown.count() < 2 {
			t.Fatalf("pivot %d of %d unknowns", e.pivot, e.unknown.count())
		}
		for at, coefficient := range e.coefficient {
			if (coefficient != 0) != e.unknown.has(at) {
				t.Fatal("an unknown has no coefficient, or the reverse")
			}
			known := d.known[at].id
			if coefficient != 0 && known > d.newest-Window && known <= d.newest && known >= 0 {
				t.Fatal("what is known is unknown to an equation")
			}
		}
	}
}
