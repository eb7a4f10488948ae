package header

import (
	"bytes"
	"testing"
)

func FuzzParseIsTheReverseOfAppend(f *testing.F) {
	f.Add([]byte{0x40, 1, 2, 3, 4, 0, 9, 9})
	f.Add([]byte{0x40, 1, 2, 3, 4, 1, 255, 7, 1})
	f.Add([]byte{0x40, 1, 2, 3, 4, 2, 8, 0, 63, 1, 2})
	f.Add([]byte{0x40, 1, 2, 3, 4, 2, 8, 0})
	f.Add([]byte{0x40, 1, 2, 3, 4, 3, 8, 0, 9})
	f.Fuzz(func(t *testing.T, datagram []byte) {
		prefix, h, rest, err := Parse(datagram)
		if err != nil {
			return
		}
		again := append(h.Append(append([]byte{}, prefix...)), rest...)
		if !bytes.Equal(again, datagram) {
			t.Errorf("%x became %x", datagram, again)
		}
	})
}

func TestDatagramsThatEndInsideTheHeaderAreRefused(t *testing.T) {
	for _, kind := range []Kind{Unprotected, Source, CodedXOR, CodedRLC} {
		whole := Header{Kind: kind}.Append(make([]byte, Prefix))
		for n := range len(whole) {
			if _, _, _, err := Parse(whole[:n]); err == nil {
				t.Errorf("%d of %d bytes of kind %d were accepted", n, len(whole), kind)
			}
		}
		if _, _, rest, err := Parse(whole); err != nil || len(rest) != 0 {
			t.Errorf("kind %d without a rest: %v, %v", kind, rest, err)
		}
	}
}
