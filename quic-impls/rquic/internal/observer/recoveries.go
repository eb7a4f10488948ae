package observer

import (
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
	mu     sync.Mutex
	late   int64
	unsure bool
}

// Recovery is a packet that was rebuilt. A nil one is none.
type Recovery struct {
	recoveries *Recoveries
	checksum   uint32
	at         time.Time // when QUIC took it
	frames     []qlog.StreamFrame
	late       bool
}

// Rebuilt says that a packet was rebuilt; nil when nobody hears.
func (r *Recoveries) Rebuilt(packet []byte) *Recovery {
	if r == nil {
		return nil
	}
	return &Recovery{recoveries: r, checksum: checksum(packet)}
}

func checksum(packet []byte) uint32 { return uint32(qlog.CalculateDatagramPayloadChecksum(packet)) }

// Came says that a packet has come in the place of the one that was rebuilt: it is late if they are the same.
func (r *Recovery) Came(packet []byte) {
	if r != nil && r.checksum == checksum(packet) {
		r.countLate()
	}
}

// doubt says that nobody knows which packet it was that QUIC told of.
func (r *Recoveries) doubt() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unsure = true
}

// Late is how many recoveries have saved nothing, if that is known.
func (r *Recoveries) Late() (late int64, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.late, !r.unsure
}

func (r *Recovery) countLate() {
	r.recoveries.mu.Lock()
	defer r.recoveries.mu.Unlock()
	if !r.late {
		r.late = true
		r.recoveries.late++
	}
}

// arrivals is the stream data that a connection has received.
type arrivals struct {
	streams map[qlog.StreamID]*received
	recent  []*Recovery // the oldest first
}

// received is what has come of a stream.
type received struct {
	ranges []span // in order, apart from each other
	ended  bool
}

// span is from an offset to before another one.
type span struct{ start, end int64 }

func spanOf(f qlog.StreamFrame) span { return span{f.Offset, f.Offset + f.Length} }

// packet takes a 1-RTT packet that QUIC has received, and what was rebuilt if that is it; oneWay is the least time that packets take.
func (a *arrivals) packet(e *qlog.PacketReceived, rebuilt *Recovery, now time.Time, oneWay time.Duration) {
	var frames []qlog.StreamFrame
	for _, f := range e.Frames {
		if stream, ok := f.Frame.(*qlog.StreamFrame); ok {
			frames = append(frames, *stream)
		}
	}
	if rebuilt != nil {
		rebuilt.at, rebuilt.frames = now, frames
		if len(frames) > 0 && !slices.ContainsFunc(frames, a.isNews) {
			rebuilt.countLate()
		}
		a.recent = append(a.recent, rebuilt)
	} else {
		a.repeat(frames, now, oneWay)
	}
	for _, f := range frames {
		a.add(f)
	}
}

// repeat takes frames that came in a packet of their own.
func (a *arrivals) repeat(frames []qlog.StreamFrame, now time.Time, oneWay time.Duration) {
	a.recent = slices.DeleteFunc(a.recent, func(rebuilt *Recovery) bool { return now.Sub(rebuilt.at) > oneWay })
	for _, rebuilt := range a.recent {
		for _, f := range frames {
			if slices.ContainsFunc(rebuilt.frames, func(g qlog.StreamFrame) bool { return overlap(f, g) }) {
				rebuilt.countLate()
			}
		}
	}
}

func overlap(f, g qlog.StreamFrame) bool {
	a, b := spanOf(f), spanOf(g)
	return f.StreamID == g.StreamID && a.start < b.end && b.start < a.end
}

// isNews reports whether anything of a frame had not come.
func (a *arrivals) isNews(f qlog.StreamFrame) bool {
	stream := a.streams[f.StreamID]
	if stream == nil || f.Fin && !stream.ended {
		return true
	}
	of := spanOf(f)
	return !slices.ContainsFunc(stream.ranges, func(r span) bool { return r.start <= of.start && of.end <= r.end })
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
	// Those that touch it become one with it.
	first, _ := slices.BinarySearchFunc(s.ranges, added.start, func(r span, start int64) int { return int(r.end - start) })
	last := first
	for last < len(s.ranges) && s.ranges[last].start <= added.end {
		added = span{min(added.start, s.ranges[last].start), max(added.end, s.ranges[last].end)}
		last++
	}
	s.ranges = slices.Replace(s.ranges, first, last, added)
}
