package content

import (
	"bytes"
	"crypto/sha256"
	"io"
	"testing"
	"testing/iotest"
)

// The first outputs of SplitMix64 for this seed, by its authors' reference program (prng.di.unimi.it/splitmix64.c).
func TestWordsAreThoseOfSplitMix64(t *testing.T) {
	right := []uint64{
		6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821,
	}
	for j, word := range right {
		if got := Word(1234567, uint64(j)); got != word {
			t.Errorf("word %d is %d, right is %d", j, got, word)
		}
	}
}

func TestContentIsTheLittleEndianWordsCutAtItsSize(t *testing.T) {
	whole, err := io.ReadAll(NewReader(1234567, 40)) // the first word is 0x599ed017fb08fc85
	if err != nil {
		t.Fatal(err)
	}
	if first := []byte{0x85, 0xfc, 0x08, 0xfb, 0x17, 0xd0, 0x9e, 0x59}; !bytes.Equal(whole[:8], first) {
		t.Errorf("begins with %x, right is %x", whole[:8], first)
	}
	for size := range 41 {
		if part, _ := io.ReadAll(NewReader(1234567, int64(size))); !bytes.Equal(part, whole[:size]) {
			t.Errorf("%d bytes are %x", size, part)
		}
	}
}

func TestContentDoesNotDependOnHowItIsRead(t *testing.T) {
	const size = 200_003
	right := Hash(42, size)
	byBytes, err := io.ReadAll(iotest.OneByteReader(NewReader(42, size)))
	if err != nil || sha256.Sum256(byBytes) != right {
		t.Errorf("read by bytes: %d bytes, %v", len(byBytes), err)
	}
	byHalves, err := io.ReadAll(iotest.HalfReader(NewReader(42, size)))
	if err != nil || sha256.Sum256(byHalves) != right {
		t.Errorf("read by halves: %d bytes, %v", len(byHalves), err)
	}
}

func TestOtherSeedsMakeOtherContent(t *testing.T) {
	if Hash(0, 100) == Hash(1, 100) {
		t.Error("seeds 0 and 1 make the same content")
	}
}
