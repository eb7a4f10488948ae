package lossylink

import (
	"fmt"
	"time"
)

// Settings of one direction.
type Settings struct {
	// Text is the text of its lane.
	Text string
	// Loses, if any, says of the n-th datagram that leaves the lane (from 0) whether it is lost, too: a test can tell
	// datagrams by their content.
	Loses func(n uint64, datagram []byte) bool
}

// Drops are losses that settings take.
type Drops func(*Settings)

// Nothing loses no datagram.
func Nothing(*Settings) {}

// Uniform loses each datagram with probability p.
func Uniform(seed uint64, p float64) Drops {
	return func(s *Settings) { s.Text += fmt.Sprintf("model uniform\np %v\nseed %d\n", p, seed) }
}

// GilbertElliott loses datagrams in bursts. k and h are the probabilities that a datagram is delivered in the good and in
// the bad state.
func GilbertElliott(seed uint64, p, r, k, h float64) Drops {
	return func(s *Settings) {
		s.Text += fmt.Sprintf("model ge\np %v\nr %v\nk %v\nh %v\nseed %d\n", p, r, k, h, seed)
	}
}

// Those loses the datagrams that a function tells.
func Those(loses func(n uint64, datagram []byte) bool) Drops {
	return func(s *Settings) { s.Loses = loses }
}

// Rate has the settings of a direction by its rate, its delay, its queue in bytes and its losses.
func Rate(mbps float64, delay time.Duration, queue uint64, drops Drops) Settings {
	s := Settings{Text: fmt.Sprintf("rate_bps %d\ndelay_ns %d\nqueue_bytes %d\n", uint64(mbps*1e6), delay, queue)}
	drops(&s)
	return s
}
