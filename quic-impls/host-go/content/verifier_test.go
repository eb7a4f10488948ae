package content

import (
	"strings"
	"testing"
)

func TestContentIsComparedByteByByte(t *testing.T) {
	right := make([]byte, 1000)
	Fill(right, 7, 0)
	v := &Verifier{Seed: 7, Size: 1000}
	for _, part := range [][]byte{right[:1], right[1:600], right[600:]} {
		if _, err := v.Write(part); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := v.Write(right[:1]); err == nil || !strings.Contains(err.Error(), "more than the 1000 bytes") {
		t.Errorf("%v", err)
	}
	right[999]++
	v = &Verifier{Seed: 7, Size: 1000}
	if _, err := v.Write(right); err == nil || !strings.Contains(err.Error(), "byte 999 is not that of the content") {
		t.Errorf("%v", err)
	}
}
