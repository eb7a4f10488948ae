package observer

import (
	"math/bits"
	"time"
)

// Progress is a sender's knowledge of its path. The counts are of 1-RTT packets that need an acknowledgement, since the connection
// began.
type Progress struct {
	Delivered   int64 // acknowledged
	Lost        int64 // declared lost; an acknowledgement that comes after all changes nothing
	SmoothedRTT time.Duration
	MinRTT      time.Duration
	Window      int // congestion window in bytes
}

// outstandingWindow is the number of packet numbers, up to the newest, whose fate is followed: more than
// the packets in flight on any link of the papers.
const outstandingWindow = 1 << 14

// outstanding is the set of packets that were sent, and neither acknowledged nor declared lost.
type outstanding struct {
	words  [outstandingWindow / 64]uint64 // a bit for each packet number, by place
	oldest int64                          // none is older
	newest int64
}

func (o *outstanding) sent(number int64) {
	for n := o.newest + 1; n <= min(number, o.newest+outstandingWindow); n++ {
		o.words[n%outstandingWindow/64] &^= 1 << (n % 64) // of the packet a window ago
	}
	o.newest = max(o.newest, number)
	o.oldest = max(o.oldest, o.newest-outstandingWindow+1)
	o.words[number%outstandingWindow/64] |= 1 << (number % 64)
}

// lost reports whether a packet was outstanding.
func (o *outstanding) lost(number int64) bool { return o.acknowledged(number, number) == 1 }

// acknowledged returns how many of a range of packets were outstanding.
func (o *outstanding) acknowledged(first, last int64) (count int64) {
	first, last = max(first, o.oldest), min(last, o.newest)
	for first <= last {
		word := &o.words[first%outstandingWindow/64]
		end := min(last, first|63)
		mask := ^uint64(0) << (first % 64) & (^uint64(0) >> (63 - end%64))
		count += int64(bits.OnesCount64(*word & mask))
		*word &^= mask
		first = end + 1
	}
	for o.oldest <= o.newest-64 && o.words[o.oldest%outstandingWindow/64] == 0 {
		o.oldest = o.oldest | 63 + 1
	}
	return count
}
