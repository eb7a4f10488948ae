package coding

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/reedsolomon"
)

const symbolSize = 1250

func randomSymbols(n int) [][]byte {
	random := rand.New(rand.NewPCG(1, 1))
	symbols := make([][]byte, n)
	for i := range symbols {
		symbols[i] = make([]byte, symbolSize)
		for j := range symbols[i] {
			symbols[i][j] = byte(random.Uint32())
		}
	}
	return symbols
}

// BenchmarkEncode is per source symbol, coded symbols included.
func BenchmarkEncode(b *testing.B) {
	for _, size := range []int{9, 32, 63} {
		for name, code := range codes {
			b.Run(fmt.Sprintf("%s/generation=%d", name, size), func(b *testing.B) {
				symbols, encoder := randomSymbols(size), code.NewEncoder(rand.New(rand.NewPCG(0, 0)))
				payload := make([]byte, 0, 2048)
				b.SetBytes(symbolSize)
				b.ReportAllocs()
				for n := 0; b.Loop(); n++ {
					encoder.Add(symbols[n%size])
					if encoder.Size() == size {
						for i := range code.Redundancies() {
							payload = encoder.AppendRepair(payload[:0], i)
						}
						encoder.Reset()
					}
				}
			})
		}
	}
}

// BenchmarkDecode is per source symbol that was sent, with as many losses in each generation as coded symbols.
func BenchmarkDecode(b *testing.B) {
	for _, size := range []int{9, 32, 63} {
		for name, code := range codes {
			for _, lossy := range []bool{false, true} {
				b.Run(fmt.Sprintf("%s/generation=%d/lossy=%t", name, size, lossy), func(b *testing.B) {
					symbols, encoder, decoder := randomSymbols(size), code.NewEncoder(rand.New(rand.NewPCG(0, 0))), code.NewDecoder()
					var payloads [][]byte
					for _, symbol := range symbols {
						encoder.Add(symbol)
					}
					for i := range code.Redundancies() {
						payloads = append(payloads, encoder.AppendRepair(nil, i))
					}
					lost := 0
					if lossy {
						lost = code.Redundancies()
					}
					recovered, id, number := 0, int64(0), int64(0)
					b.SetBytes(symbolSize)
					b.ReportAllocs()
					for n := 0; b.Loop(); n++ {
						place := n % size
						if place >= lost {
							recovered += len(decoder.Source(id, Range{number, number}, symbols[place]))
						}
						if place == size-1 {
							for _, payload := range payloads {
								recovered += len(decoder.Repair(number, id, size, payload))
							}
							number++
						}
						id++
					}
					if int64(recovered) != number*int64(lost) {
						b.Errorf("%d of %d were recovered", recovered, number*int64(lost))
					}
				})
			}
		}
	}
}

// BenchmarkReedSolomonParity measures klauspost/reedsolomon for the same work: per source symbol, a code with as many parity shards
// as RLC has coded symbols.
func BenchmarkReedSolomonParity(b *testing.B) {
	for _, size := range []int{9, 32, 63} {
		for _, coded := range []int{1, 3} {
			b.Run(fmt.Sprintf("coded=%d/generation=%d", coded, size), func(b *testing.B) {
				encoder, err := reedsolomon.New(size, coded, reedsolomon.WithMaxGoroutines(1))
				if err != nil {
					b.Fatal(err)
				}
				shards := append(randomSymbols(size), randomSymbols(coded)...)
				b.SetBytes(symbolSize)
				b.ReportAllocs()
				for n := 0; b.Loop(); n++ {
					if n%size == 0 {
						if err := encoder.Encode(shards); err != nil {
							b.Fatal(err)
						}
					}
				}
			})
		}
	}
}

// BenchmarkMultiplyAdd measures one coefficient times one symbol, added to a sum.
func BenchmarkMultiplyAdd(b *testing.B) {
	symbols := randomSymbols(2)
	b.SetBytes(symbolSize)
	b.ReportAllocs()
	for b.Loop() {
		symbols[0] = addTimes(symbols[0], 77, symbols[1])
	}
}
