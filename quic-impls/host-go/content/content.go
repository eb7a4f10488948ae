// Package content makes the bytes of a transfer from a seed, so that both endpoints know what is right without
// sharing a file: the little-endian words mix(seed + (j+1)·0x9E3779B97F4A7C15) for j = 0, 1, …, cut at the
// transfer's length, where mix is SplitMix64's output function.
package content

import (
	"crypto/sha256"
	"encoding/binary"
	"io"
)

const goldenGamma = 0x9E3779B97F4A7C15

// Mix is the output function of SplitMix64.
func Mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// Word is the j-th word that SplitMix64 puts out when it starts with a seed.
func Word(seed, j uint64) uint64 { return Mix(seed + (j+1)*goldenGamma) }

// Reader reads the content of a transfer. Copying it (io.Copy) goes in large steps.
type Reader struct {
	seed         uint64
	offset, size int64
}

// NewReader returns the content of size bytes that a seed makes.
func NewReader(seed uint64, size int64) *Reader { return &Reader{seed: seed, size: size} }

func (r *Reader) Read(b []byte) (int, error) {
	if r.offset == r.size {
		return 0, io.EOF
	}
	b = b[:min(int64(len(b)), r.size-r.offset)]
	Fill(b, r.seed, r.offset)
	r.offset += int64(len(b))
	return len(b), nil
}

// Fill fills b with the content that a seed makes, from an offset on.
func Fill(b []byte, seed uint64, offset int64) {
	var word [8]byte
	j, within := uint64(offset)/8, offset%8
	if within != 0 {
		binary.LittleEndian.PutUint64(word[:], Word(seed, j))
		b = b[copy(b, word[within:]):]
		j++
	}
	for ; len(b) >= 8; b = b[8:] {
		binary.LittleEndian.PutUint64(b, Word(seed, j))
		j++
	}
	binary.LittleEndian.PutUint64(word[:], Word(seed, j))
	copy(b, word[:])
}

// WriteTo implements io.WriterTo.
func (r *Reader) WriteTo(w io.Writer) (int64, error) {
	buffer := make([]byte, 64<<10)
	var written int64
	for {
		n, err := r.Read(buffer)
		if err != nil {
			return written, nil // io.EOF is the only one
		}
		n, err = w.Write(buffer[:n])
		written += int64(n)
		if err != nil {
			return written, err
		}
	}
}

// Hash is the SHA-256 of the content of size bytes that a seed makes.
func Hash(seed uint64, size int64) [sha256.Size]byte {
	h := sha256.New()
	NewReader(seed, size).WriteTo(h) // a hash refuses nothing
	return [sha256.Size]byte(h.Sum(nil))
}
