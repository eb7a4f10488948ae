package coding

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/fecbench/fecbench/quic-impls/rquic/internal/header"
)

// arrival is a symbol as the decoder gets it.
type arrival struct {
	repair               bool
	generation, id, size uint8
	symbol               []byte
}

// generation encodes size random symbols of different lengths, the first with a given id.
func generation(random *rand.Rand, encoder Encoder, number, first uint8, size int) (sources []arrival, repair arrival) {
	for i := range size {
		symbol := make([]byte, 1+random.IntN(40))
		for j := range symbol {
			symbol[j] = byte(random.Uint32())
		}
		encoder.Add(symbol)
		sources = append(sources, arrival{generation: number, id: first + uint8(i), symbol: symbol})
	}
	last := first + uint8(size-1)
	return sources, arrival{true, number, last, uint8(size), encoder.AppendRepair(nil)}
}

func (a arrival) arrive(d Decoder) []Recovered {
	if a.repair {
		return d.Repair(a.generation, a.id, a.size, a.symbol)
	}
	return d.Source(a.generation, a.id, a.symbol)
}

// isSymbol reports whether a recovered symbol is the right one, zeros behind it aside.
func isSymbol(recovered, right []byte) bool {
	return len(recovered) >= len(right) && bytes.Equal(recovered[:len(right)], right) &&
		len(bytes.Trim(recovered[len(right):], "\x00")) == 0
}

func TestAnySingleLossIsRecoveredInAnyOrderOfArrival(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for size := 1; size <= header.MaxGenerationSize; size++ {
		for lost := range size {
			code := XOR{GenerationSize: size}
			sources, repair := generation(random, code.NewEncoder(), uint8(lost), uint8(random.Uint32()), size)
			arrivals := append([]arrival{repair}, sources[:lost]...)
			arrivals = append(arrivals, sources[lost+1:]...)
			random.Shuffle(len(arrivals), func(i, j int) { arrivals[i], arrivals[j] = arrivals[j], arrivals[i] })
			decoder := code.NewDecoder()
			var recovered []Recovered
			for _, a := range arrivals {
				recovered = append(recovered, a.arrive(decoder)...)
			}
			if len(recovered) != 1 || recovered[0].ID != sources[lost].id ||
				recovered[0].Generation != repair.generation || !isSymbol(recovered[0].Symbol, sources[lost].symbol) {
				t.Fatalf("size %d, lost %d: recovered %v, right is %v", size, lost, recovered, sources[lost])
			}
		}
	}
}

func TestWithoutLossOrWithTwoLossesNothingIsRecovered(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	code := XOR{GenerationSize: 9}
	for first := range 9 {
		for second := range 9 {
			sources, repair := generation(random, code.NewEncoder(), 0, 250, 9)
			decoder := code.NewDecoder()
			arrivals := append([]arrival{}, sources...)
			if first != second {
				arrivals = nil
				for i, source := range sources {
					if i != first && i != second {
						arrivals = append(arrivals, source)
					}
				}
			}
			for _, a := range append(arrivals, repair) {
				if recovered := a.arrive(decoder); len(recovered) > 0 {
					t.Fatalf("lost %d and %d: recovered %v", first, second, recovered)
				}
			}
		}
	}
}

func TestOneLossInEachOf1000GenerationsIsRecoveredWhileNumbersWrap(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for _, size := range []int{1, 2, 9, 63} {
		code := XOR{GenerationSize: size}
		encoder, decoder := code.NewEncoder(), code.NewDecoder()
		first := uint8(0)
		for number := range 1000 {
			sources, repair := generation(random, encoder, uint8(number), first, size)
			first += uint8(size)
			lost := random.IntN(size)
			var recovered []Recovered
			for i, source := range sources {
				if i != lost {
					recovered = append(recovered, source.arrive(decoder)...)
				}
			}
			recovered = append(recovered, repair.arrive(decoder)...)
			if len(recovered) != 1 || !isSymbol(recovered[0].Symbol, sources[lost].symbol) {
				t.Fatalf("size %d, generation %d: recovered %v, right is %v", size, number, recovered, sources[lost])
			}
		}
	}
}

func TestAnEncoderSaysWhenAGenerationIsComplete(t *testing.T) {
	encoder := XOR{GenerationSize: 3}.NewEncoder()
	for range 2 {
		for _, complete := range []bool{false, false, true} {
			if encoder.Add([]byte{1}) != complete {
				t.Fatal("wrong at size", encoder.Size())
			}
		}
		encoder.AppendRepair(nil)
		if encoder.Size() != 0 {
			t.Fatal("a new generation has", encoder.Size())
		}
	}
}

func TestASourcePacketThatComesTwiceCountsOnce(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 12))
	code := XOR{GenerationSize: 3}
	sources, repair := generation(random, code.NewEncoder(), 0, 0, 3)
	decoder := code.NewDecoder()
	for _, source := range []arrival{sources[0], sources[0], sources[1]} {
		source.arrive(decoder)
	}
	recovered := repair.arrive(decoder)
	if len(recovered) != 1 || !isSymbol(recovered[0].Symbol, sources[2].symbol) {
		t.Fatalf("recovered %v, right is %v", recovered, sources[2])
	}
	for _, again := range []arrival{sources[2], repair} {
		if recovered := again.arrive(decoder); len(recovered) > 0 {
			t.Errorf("recovered %v once more", recovered)
		}
	}
}

func TestAStaleGenerationIsDroppedByItsAge(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	code := XOR{GenerationSize: 2}
	encoder, decoder := code.NewEncoder(), code.NewDecoder()
	stale, staleRepair := generation(random, encoder, 0, 0, 2)
	stale[0].arrive(decoder)
	for number := uint8(1); number <= 100; number++ {
		sources, _ := generation(random, encoder, number, 2*number, 2)
		sources[0].arrive(decoder)
	}
	if recovered := staleRepair.arrive(decoder); len(recovered) > 0 {
		t.Errorf("recovered %v", recovered)
	}
	if _, kept := decoder.(*xorDecoder).generations[0]; kept {
		t.Error("it is kept again")
	}
}

func TestALyingCodedPacketRecoversNothing(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 10))
	code := XOR{GenerationSize: 4}
	sources, repair := generation(random, code.NewEncoder(), 0, 10, 4)
	lies := map[string]arrival{
		"size 0":             {true, 0, repair.id, 0, repair.symbol},
		"size 255":           {true, 0, repair.id, 255, repair.symbol},
		"two of the four":    {true, 0, repair.id - 2, 2, repair.symbol},
		"an earlier last id": {true, 0, repair.id - 1, 4, repair.symbol},
		"too small":          {true, 0, repair.id, 2, repair.symbol},
		"another one's gen":  {true, 1, repair.id, 4, repair.symbol},
	}
	for name, lie := range lies {
		decoder := code.NewDecoder()
		for _, source := range sources[1:] {
			source.arrive(decoder)
		}
		if recovered := lie.arrive(decoder); len(recovered) > 0 {
			t.Errorf("%s: recovered %v", name, recovered)
		}
	}
}

func TestTheGenerationSizeIsTheNearestToTheCodeRate(t *testing.T) {
	for k := 1; k <= header.MaxGenerationSize; k++ {
		if got := XORWithRate(float64(k) / float64(k+1)).GenerationSize; got != k {
			t.Errorf("rate %d/%d gives %d", k, k+1, got)
		}
	}
	for rate, k := range map[float64]int{0.5: 1, 0.9: 9, 0.985: 63, 0.65: 2, 0.55: 1} {
		if got := XORWithRate(rate).GenerationSize; got != k {
			t.Errorf("rate %v gives %d, right is %d", rate, got, k)
		}
	}
}

// FuzzDecoderStaysBounded feeds a decoder with whatever: 4 bytes of header and up to 255 of symbol at a time.
func FuzzDecoderStaysBounded(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0, 2, 7, 7, 2, 0, 1, 2, 2, 7, 7})
	f.Add(bytes.Repeat([]byte{2, 200, 255, 63, 0}, 300))
	f.Fuzz(func(t *testing.T, input []byte) {
		decoder := XOR{GenerationSize: 9}.NewDecoder().(*xorDecoder)
		for len(input) > 5 {
			a := arrival{input[0]%2 == 0, input[1], input[2], input[3], nil}
			n := min(int(input[4]), len(input)-5)
			a.symbol, input = input[5:5+n], input[5+n:]
			if recovered := a.arrive(decoder); len(recovered) > 1 {
				t.Fatal(fmt.Sprint("recovered ", len(recovered)))
			}
			if len(decoder.generations) > xorGenerationsKept {
				t.Fatal(len(decoder.generations), "generations are kept")
			}
		}
	})
}
