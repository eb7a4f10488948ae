package simulation

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"math/rand/v2"
	"slices"
	"testing"
)

func randomBytes(random *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(random.Uint32())
	}
	return b
}

func TestASealedPacketIsAsLongAsOneOfAESAndOpensToWhatItWas(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		key, nonce := randomBytes(random, 16), randomBytes(random, nonceLength)
		header, plaintext := randomBytes(random, random.IntN(30)), randomBytes(random, random.IntN(1300))
		block, err := aes.NewCipher(key)
		if err != nil {
			t.Fatal(err)
		}
		real, err := cipher.NewGCM(block)
		if err != nil {
			t.Fatal(err)
		}
		whole := append(slices.Clone(header), plaintext...)
		sealed := newSeal(key).Seal(whole[len(header):len(header)], nonce, whole[len(header):], header) // in place, as quic-go does it
		if right := real.Seal(nil, nonce, plaintext, header); len(sealed) != len(right) {
			t.Errorf("%d bytes, right is %d", len(sealed), len(right))
		}
		opened, err := newSeal(key).Open(sealed[:0], nonce, sealed, header)
		if err != nil || !bytes.Equal(opened, plaintext) {
			t.Errorf("%x opened, %v; right is %x", opened, err, plaintext)
		}
	}
	if s := newSeal(make([]byte, 32)); s.NonceSize() != 12 || s.Overhead() != 16 { // as in RFC 9001, §5.3
		t.Errorf("nonces of %d bytes, tags of %d", s.NonceSize(), s.Overhead())
	}
}

func TestAPacketWithAnotherKeyNumberOrContentIsNotOpened(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	key, nonce := randomBytes(random, 16), randomBytes(random, nonceLength)
	header, sealed := randomBytes(random, 9), []byte(nil)
	sealed = newSeal(key).Seal(sealed, nonce, randomBytes(random, 100), header)
	flip := func(b []byte) []byte {
		other := slices.Clone(b)
		other[random.IntN(len(other))] ^= 1 << random.IntN(8)
		return other
	}
	for range 200 {
		for what, open := range map[string]func() ([]byte, error){
			"key":     func() ([]byte, error) { return newSeal(flip(key[:nonceLength])).Open(nil, nonce, sealed, header) },
			"nonce":   func() ([]byte, error) { return newSeal(key).Open(nil, flip(nonce), sealed, header) },
			"header":  func() ([]byte, error) { return newSeal(key).Open(nil, nonce, sealed, flip(header)) },
			"content": func() ([]byte, error) { return newSeal(key).Open(nil, nonce, flip(sealed), header) },
			"length": func() ([]byte, error) {
				return newSeal(key).Open(nil, nonce, sealed[:random.IntN(len(sealed))], header)
			},
		} {
			if opened, err := open(); err == nil {
				t.Fatalf("another %s: opened %x", what, opened)
			}
		}
	}
}
