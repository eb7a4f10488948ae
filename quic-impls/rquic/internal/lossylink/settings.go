package lossylink

import (
	"math"
	"time"

	"github.com/fecbench/fecbench/quic-impls/rquic/internal/lane"
)

// Settings of one direction.
type Settings struct {
	lane.Settings
	// Loses, if any, says of the n-th datagram that leaves the lane (from 0) whether it is lost, too: a test can tell
	// datagrams by their content.
	Loses func(n uint64, datagram []byte) bool
}

// Drops are losses that settings take.
type Drops func(*Settings)

// Nothing is lost.
func Nothing(*Settings) {}

// Uniform loses each datagram with probability p.
func Uniform(seed uint64, p float64) Drops {
	return func(s *Settings) { s.Losses = lane.Losses{Seed: seed, LossGood: threshold(p), LossBad: threshold(p)} }
}

// GilbertElliott loses datagrams in bursts. k and h are the probabilities that a datagram is delivered in the good and in
// the bad state.
func GilbertElliott(seed uint64, p, r, k, h float64) Drops {
	return func(s *Settings) {
		s.Losses = lane.Losses{
			Seed: seed, LossGood: threshold(1 - k), LossBad: threshold(1 - h), GoodToBad: threshold(p), BadToGood: threshold(r),
		}
	}
}

// Those loses the datagrams that a function tells.
func Those(loses func(n uint64, datagram []byte) bool) Drops {
	return func(s *Settings) { s.Loses = loses }
}

// threshold of an event's probability (dropper/losses.h).
func threshold(q float64) uint64 { return uint64(math.RoundToEven(q * (1 << 32))) }

// Rate has the settings of a direction by its rate, its delay, its queue in bytes and its losses.
func Rate(mbps float64, delay time.Duration, queue uint64, drops Drops) Settings {
	s := Settings{Settings: lane.Settings{RateBPS: uint64(mbps * 1e6), Delay: delay, QueueBytes: queue}}
	drops(&s)
	return s
}
