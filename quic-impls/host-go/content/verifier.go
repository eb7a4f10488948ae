package content

import (
	"bytes"
	"fmt"
)

// Verifier takes the content of a seed, and refuses the first byte that is none of it, and bytes beyond its size.
type Verifier struct {
	Seed uint64
	Size int64
	// Received is the number of bytes that have come.
	Received int64
	right    []byte
}

func (v *Verifier) Write(b []byte) (int, error) {
	if v.Received+int64(len(b)) > v.Size {
		return 0, fmt.Errorf("more than the %d bytes that were asked for", v.Size)
	}
	if len(v.right) < len(b) {
		v.right = make([]byte, len(b))
	}
	Fill(v.right[:len(b)], v.Seed, v.Received)
	if right := v.right[:len(b)]; !bytes.Equal(b, right) {
		n := 0
		for b[n] == right[n] {
			n++
		}
		return n, fmt.Errorf("byte %d is not that of the content", v.Received+int64(n))
	}
	v.Received += int64(len(b))
	return len(b), nil
}
