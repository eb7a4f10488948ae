package messages

import (
	"bytes"
	"fmt"

	"github.com/fecbench/fecbench/quic-impls/host-go/content"
)

// Received is the set of parts that have come: a bit for each, however many copies a peer sends.
type Received struct {
	traffic *Traffic
	first   []int // of each message, the place of its first part
	came    []uint64
	missing int
}

// NewReceived returns the empty set.
func NewReceived(t *Traffic) *Received {
	r := &Received{traffic: t, first: make([]int, len(t.Messages))}
	for m := range t.Messages {
		r.first[m] = r.missing
		r.missing += t.Parts(m)
	}
	r.came = make([]uint64, (r.missing+63)/64)
	return r
}

// Add notes that a part has come, and reports whether it is the first copy.
func (r *Received) Add(message, part int) bool {
	place := r.first[message] + part
	word, bit := &r.came[place/64], uint64(1)<<(place%64)
	if *word&bit != 0 {
		return false
	}
	*word |= bit
	r.missing--
	return true
}

// Complete reports whether all parts of all messages have come.
func (r *Received) Complete() bool { return r.missing == 0 }

// Verifier compares parts with what they have to be.
type Verifier struct {
	Traffic *Traffic
	Seed    uint64 // of the content
	right   [MaxPart]byte
}

// Verify refuses another content than that of a part.
func (v *Verifier) Verify(message, part int, got []byte) error {
	offset, size := v.Traffic.Part(message, part)
	right := v.right[:size]
	content.Fill(right, v.Seed, offset)
	if !bytes.Equal(got, right) {
		return fmt.Errorf("part %d of message %d came with another content than was to be sent", part, message)
	}
	return nil
}
