package coding

import "github.com/klauspost/reedsolomon"

// field is GF(2^8) modulo x^8+x^4+x^3+x^2+1, as in RFC 8681; its operations on slices use the vector units of the CPU.
var field reedsolomon.LowLevel

// inverses are the inverses of 1 to 255.
var inverses = func() (inverses [256]byte) {
	var elements, products [256]byte
	for i := range elements {
		elements[i] = byte(i)
	}
	for a := 1; a < 256; a++ {
		field.GalMulSlice(byte(a), elements[:], products[:])
		for b, product := range products {
			if product == 1 {
				inverses[a] = byte(b)
			}
		}
	}
	return inverses
}()

// addTimes adds coefficient times symbol to sum, which grows to the longer of both, and returns it.
func addTimes(sum []byte, coefficient byte, symbol []byte) []byte {
	if n := len(sum); len(symbol) > n {
		if cap(sum) < len(symbol) {
			sum = append(sum, make([]byte, len(symbol)-n)...)
		} else {
			sum = sum[:len(symbol)]
			clear(sum[n:])
		}
	}
	field.GalMulSliceXor(coefficient, symbol, sum[:len(symbol)])
	return sum
}
