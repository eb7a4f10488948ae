package observer

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/quic-go/quic-go/qlog"
)

// Recoveries judges packets that were rebuilt below QUIC by what that has saved. One is late if the packet itself came after all,
// if its stream data had come before, or if another packet brings some of that so soon that it was on its way already: within half
// of the smallest round-trip time.
//
// quic-go doesn't tell which datagram it has a packet from: a Connection finds that out. Where it can't, nothing can be said any more.
type Recoveries struct {
	mu      sync.Mutex
	late    int64
	tooLate int64
	unsure  bool
}

// Recovery is a packet that was rebuilt. A nil one is none.
type Recovery struct {
	recoveries *Recoveries
	checksum   uint32
	at         time.Time    // when QUIC took it
	streams    streamRanges // its data, as long as more of it may come
	taken      bool         // QUIC has decrypted it: only then it counts
	late       bool
	tooLate    bool // QUIC took it for one that it had, and it has not come
}

// Rebuilt records that a packet was rebuilt; it returns nil when nobody hears.
func (r *Recoveries) Rebuilt(packet []byte) *Recovery {
	if r == nil {
		return nil
	}
	return &Recovery{recoveries: r, checksum: checksum(packet)}
}

func checksum(packet []byte) uint32 { return uint32(qlog.CalculateDatagramPayloadChecksum(packet)) }

// Came records that a packet has come in place of the rebuilt one: the rebuilt one is late if they are the same.
func (r *Recovery) Came(packet []byte) {
	if r != nil && r.checksum == checksum(packet) {
		r.countLate()
		r.setTooLate(false)
	}
}

// TooLate returns how many packets never came, were rebuilt, and taken by QUIC for ones that it had.
func (r *Recoveries) TooLate() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tooLate
}

// countTooLate counts a rebuilt packet that QUIC takes for one that it had. It had it if it has come.
func (r *Recovery) countTooLate() {
	if !r.late {
		r.setTooLate(true)
	}
	r.countLate()
}

func (r *Recovery) setTooLate(tooLate bool) {
	r.recoveries.mu.Lock()
	defer r.recoveries.mu.Unlock()
	if r.tooLate != tooLate {
		r.tooLate = tooLate
		if tooLate {
			r.recoveries.tooLate++
		} else {
			r.recoveries.tooLate--
		}
	}
}

// doubt records that it is unknown which packet QUIC reported, or whether that packet brought the rebuilt content.
func (r *Recoveries) doubt() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unsure = true
}

// Late returns how many recoveries have saved nothing, if that is known.
func (r *Recoveries) Late() (late int64, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.late, !r.unsure
}

func (r *Recovery) countLate() {
	r.recoveries.mu.Lock()
	defer r.recoveries.mu.Unlock()
	if r.taken && !r.late {
		r.recoveries.late++
	}
	r.late = true
}

// take records that QUIC has decrypted it.
func (r *Recovery) take() {
	r.recoveries.mu.Lock()
	defer r.recoveries.mu.Unlock()
	r.taken = true
	if r.late {
		r.recoveries.late++
	}
}

// arrivals is the stream data that a connection has received.
type arrivals struct {
	streams     map[qlog.StreamID]*received
	recent      []*Recovery // the oldest first
	ranges      int         // that these have
	comparisons comparisons
}

// Limits of remembered recovered packets and of their ranges: packets have one or two ranges, and those of small messages
// some fifty.
const (
	maxRecent       = 4096
	maxRecentRanges = 16384
)

// received is the part of a stream that has come.
type received struct {
	ranges []span // in order, apart from each other
	ended  bool
}

// span is from an offset to before another one.
type span struct{ start, end int64 }

func spanOf(f qlog.StreamFrame) span { return span{f.Offset, f.Offset + f.Length} }

// streamRanges is data of streams, in ranges that are in order and don't touch.
type streamRanges []streamRange

type streamRange struct {
	id qlog.StreamID
	span
}

func rangesOf(frames []qlog.StreamFrame) (ranges streamRanges) {
	for _, f := range frames {
		if f.Length > 0 {
			ranges = append(ranges, streamRange{f.StreamID, spanOf(f)})
		}
	}
	slices.SortFunc(ranges, func(a, b streamRange) int { return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.start, b.start)) })
	apart := ranges[:0]
	for _, r := range ranges {
		if last := len(apart) - 1; last >= 0 && apart[last].id == r.id && r.start <= apart[last].end {
			apart[last].end = max(apart[last].end, r.end)
		} else {
			apart = append(apart, r)
		}
	}
	return apart
}

// overlap reports whether some of it is in a range.
func (ranges streamRanges) overlap(r streamRange) bool {
	next, _ := slices.BinarySearchFunc(ranges, r, func(a, r streamRange) int {
		if cmp.Or(cmp.Compare(a.id, r.id), cmp.Compare(a.end, r.start)) <= 0 {
			return -1
		}
		return 1
	})
	return next < len(ranges) && ranges[next].id == r.id && ranges[next].start < r.end
}

// packet takes a 1-RTT packet that QUIC has received, and what was rebuilt if that is it; oneWay is the least time that packets take.
func (a *arrivals) packet(e *qlog.PacketReceived, rebuilt *Recovery, now time.Time, oneWay time.Duration) {
	a.comparisons.pay(e.Raw.Length)
	var frames []qlog.StreamFrame
	for _, f := range e.Frames {
		if stream, ok := f.Frame.(*qlog.StreamFrame); ok {
			frames = append(frames, *stream)
		}
	}
	if rebuilt != nil {
		if len(frames) > 0 && !slices.ContainsFunc(frames, a.isNews) {
			rebuilt.countLate()
		} else {
			a.remember(rebuilt, frames, now)
		}
	} else {
		a.repeat(rangesOf(frames), now, oneWay)
	}
	for _, f := range frames {
		a.add(f)
	}
}

func (a *arrivals) remember(rebuilt *Recovery, frames []qlog.StreamFrame, now time.Time) {
	rebuilt.at, rebuilt.streams = now, rangesOf(frames)
	a.recent = append(a.recent, rebuilt)
	a.ranges += len(rebuilt.streams)
	for len(a.recent) > maxRecent || a.ranges > maxRecentRanges {
		a.forgetOldest()
	}
}

func (a *arrivals) forgetOldest() {
	a.ranges -= len(a.recent[0].streams)
	a.recent[0] = nil
	a.recent = a.recent[1:]
}

// repeat takes data that came in a packet of its own.
func (a *arrivals) repeat(streams streamRanges, now time.Time, oneWay time.Duration) {
	for len(a.recent) > 0 && now.Sub(a.recent[0].at) > oneWay {
		a.forgetOldest()
	}
	if len(streams) == 0 {
		return
	}
	for _, rebuilt := range slices.Backward(a.recent) {
		if !a.comparisons.affords(1 + len(rebuilt.streams)) {
			rebuilt.recoveries.doubt()
			return
		}
		if slices.ContainsFunc(rebuilt.streams, streams.overlap) {
			rebuilt.countLate()
			a.ranges -= len(rebuilt.streams)
			rebuilt.streams = nil
		}
	}
}

// isNews reports whether anything of a frame had not come.
func (a *arrivals) isNews(f qlog.StreamFrame) bool {
	stream := a.streams[f.StreamID]
	if stream == nil || f.Fin && !stream.ended {
		return true
	}
	of := spanOf(f)
	next, _ := slices.BinarySearchFunc(stream.ranges, of.end, func(r span, end int64) int { return cmp.Compare(r.end, end) })
	return next == len(stream.ranges) || stream.ranges[next].start > of.start
}

func (a *arrivals) add(f qlog.StreamFrame) {
	if a.streams == nil {
		a.streams = map[qlog.StreamID]*received{}
	}
	stream := a.streams[f.StreamID]
	if stream == nil {
		stream = &received{}
		a.streams[f.StreamID] = stream
	}
	stream.ended = stream.ended || f.Fin
	stream.add(spanOf(f))
}

func (s *received) add(added span) {
	// Ranges that touch it are merged with it.
	first, _ := slices.BinarySearchFunc(s.ranges, added.start, func(r span, start int64) int { return int(r.end - start) })
	last := first
	for last < len(s.ranges) && s.ranges[last].start <= added.end {
		added = span{min(added.start, s.ranges[last].start), max(added.end, s.ranges[last].end)}
		last++
	}
	s.ranges = slices.Replace(s.ranges, first, last, added)
}
