// Command peer measures klauspost/reedsolomon on the blocks of the thesis' Tables 4.3 to 4.10, symbols of 1,000 bytes,
// in one goroutine: the cost of the library that the thesis used on this machine. It prints one JSON object, from the
// measurement's name to ns per operation.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/klauspost/reedsolomon"
)

const symbolSize = 1000

// A block code of the thesis.
type block struct {
	code    string
	n, k    int
	options []reedsolomon.Option
}

func blocks() []block {
	var all []block
	for _, k := range []int{4, 8, 20, 40} {
		xor := []reedsolomon.Option{reedsolomon.WithFastOneParityMatrix(), reedsolomon.WithMaxGoroutines(1)}
		all = append(all, block{"xor", k + 1, k, xor})
	}
	for _, each := range [][2]int{{5, 4}, {6, 4}, {13, 10}, {20, 15}, {50, 30}} {
		plain := []reedsolomon.Option{reedsolomon.WithMaxGoroutines(1)}
		all = append(all, block{"rs", each[0], each[1], plain})
	}
	return all
}

func main() {
	testing.Init()
	duration := flag.Duration("time", 0, "how long each measurement takes")
	flag.Parse()
	if *duration <= 0 || flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "peer: -time %v: must be a duration above 0, and the only argument\n", *duration)
		os.Exit(2)
	}
	must(flag.Set("test.benchtime", duration.String()))
	measured := map[string]float64{}
	for _, block := range blocks() {
		name := fmt.Sprintf("%s-%d-%d", block.code, block.n, block.k)
		kept := block.encoder()
		measured[name+"-encode"] = nanoseconds(block.encode(func() reedsolomon.Encoder { return kept }))
		measured[name+"-decode"] = nanoseconds(block.decode(func() reedsolomon.Encoder { return kept }))
		if block.code == "rs" {
			measured[name+"-encode-uncached"] = nanoseconds(block.encode(block.encoder))
			measured[name+"-decode-uncached"] = nanoseconds(block.decode(block.encoder))
		}
	}
	must(json.NewEncoder(os.Stdout).Encode(measured))
}

func (b block) encoder() reedsolomon.Encoder {
	encoder, err := reedsolomon.New(b.k, b.n-b.k, b.options...)
	must(err)
	return encoder
}

// A block of random source symbols, with their repair symbols.
func (b block) symbols() [][]byte {
	random := rand.NewChaCha8([32]byte{})
	symbols := make([][]byte, b.n)
	for i := range symbols {
		symbols[i] = make([]byte, symbolSize)
		if i < b.k {
			_, err := random.Read(symbols[i])
			must(err)
		}
	}
	must(b.encoder().Encode(symbols))
	return symbols
}

func (b block) encode(encoder func() reedsolomon.Encoder) func(*testing.B) {
	symbols := b.symbols()
	return func(bench *testing.B) {
		for range bench.N {
			must(encoder().Encode(symbols))
		}
	}
}

// The first n - k source symbols are lost, or all if there are fewer.
func (b block) decode(encoder func() reedsolomon.Encoder) func(*testing.B) {
	symbols := b.symbols()
	lost := min(b.n-b.k, b.k)
	first := bytes.Clone(symbols[0])
	return func(bench *testing.B) {
		for range bench.N {
			for i := range lost {
				symbols[i] = symbols[i][:0]
			}
			must(encoder().ReconstructData(symbols))
		}
		if !bytes.Equal(symbols[0], first) {
			must(fmt.Errorf("klauspost/reedsolomon recovered something else"))
		}
	}
}

func nanoseconds(work func(*testing.B)) float64 {
	result := testing.Benchmark(work)
	return float64(result.T.Nanoseconds()) / float64(result.N)
}

func must(err error) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "peer: %v\n", err)
		os.Exit(1)
	}
}
