package observer

import (
	"slices"
	"sync"
	"time"

	"github.com/quic-go/quic-go/qlog"

	"github.com/fecbench/fecbench/quic-impls/rquic/internal/header"
)

// remembered is how many of the newest packets that were rebuilt are known by their content.
const remembered = 4096

// Recoveries judges packets that were rebuilt below QUIC by what that has saved. One is late if the packet itself came after all,
// if its stream data had come before, or if another packet brings some of that so soon that it was on its way already: within half
// of the smallest round-trip time.
//
// A nil one hears nothing. quic-go doesn't tell which datagram it has a packet from, but it takes those of a connection in the order in which it read them.
// Should the lengths ever differ, nothing can be said any more.
type Recoveries struct {
	mu        sync.Mutex
	late      int64
	unsure    bool
	ring      []recovery           // the newest ones, each in the place of one that is remembered older
	rebuilt   map[uint32]*recovery // those of the ring, by the checksum of the packet
	count     int
	delivered map[header.ConnectionID][]delivery
}

// delivery is a packet that QUIC has read and not yet told of.
type delivery struct {
	length   int
	recovery *recovery // nil for one that came
}

// maxDelivered is how many packets QUIC may have read and not told of; it keeps 256.
const maxDelivered = 4096

// recovery is a packet that was rebuilt.
type recovery struct {
	checksum uint32
	at       time.Time // when QUIC took it
	frames   []qlog.StreamFrame
	late     bool
}

// Rebuilt says that a packet was rebuilt.
func (r *Recoveries) Rebuilt(packet []byte) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rebuilt == nil {
		r.ring, r.rebuilt = make([]recovery, remembered), make(map[uint32]*recovery, remembered)
	}
	place := &r.ring[r.count%remembered]
	if r.rebuilt[place.checksum] == place {
		delete(r.rebuilt, place.checksum)
	}
	*place = recovery{checksum: checksum(packet)}
	r.rebuilt[place.checksum] = place
	r.count++
}

func checksum(packet []byte) uint32 { return uint32(qlog.CalculateDatagramPayloadChecksum(packet)) }

// Delivered says that QUIC reads a 1-RTT packet that is a datagram, and whether it is one that was rebuilt.
func (r *Recoveries) Delivered(packet []byte, rebuilt bool) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.delivered == nil {
		r.delivered = map[header.ConnectionID][]delivery{}
	}
	id := header.ConnectionID(packet[1:])
	if len(r.delivered[id]) == maxDelivered {
		return
	}
	d := delivery{length: len(packet)}
	if rebuilt {
		d.recovery = r.rebuilt[checksum(packet)]
	}
	r.delivered[id] = append(r.delivered[id], d)
}

// told takes the packet that QUIC tells of next.
func (r *Recoveries) told(id header.ConnectionID, length int) *recovery {
	queue := r.delivered[id]
	if len(queue) == 0 || queue[0].length != length {
		r.unsure = true
		return nil
	}
	r.delivered[id] = queue[1:]
	return queue[0].recovery
}

// unread says that QUIC threw the packet away that it read last.
func (r *Recoveries) unread(id header.ConnectionID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if queue := r.delivered[id]; len(queue) > 0 {
		r.delivered[id] = queue[:len(queue)-1]
	}
}

// Came says that a packet has come itself that had been rebuilt.
func (r *Recoveries) Came(packet []byte) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if rebuilt := r.rebuilt[checksum(packet)]; rebuilt != nil {
		r.isLate(rebuilt)
	}
}

// Late is how many recoveries have saved nothing, if that is known.
func (r *Recoveries) Late() (late int64, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.late, !r.unsure
}

func (r *Recoveries) isLate(rebuilt *recovery) {
	if !rebuilt.late {
		rebuilt.late = true
		r.late++
	}
}

// arrivals is the stream data that a connection has received.
type arrivals struct {
	streams map[qlog.StreamID]*received
	recent  []*recovery         // the oldest first
	id      header.ConnectionID // of the newest packet
}

// received is what has come of a stream.
type received struct {
	ranges []span // in order, apart from each other
	ended  bool
}

// span is from an offset to before another one.
type span struct{ start, end int64 }

func spanOf(f qlog.StreamFrame) span { return span{f.Offset, f.Offset + f.Length} }

// packet takes a 1-RTT packet that QUIC has received; oneWay is the least time that packets take.
func (a *arrivals) packet(recoveries *Recoveries, e *qlog.PacketReceived, now time.Time, oneWay time.Duration) {
	var frames []qlog.StreamFrame
	for _, f := range e.Frames {
		if stream, ok := f.Frame.(*qlog.StreamFrame); ok {
			frames = append(frames, *stream)
		}
	}
	recoveries.mu.Lock()
	defer recoveries.mu.Unlock()
	var rebuilt *recovery
	if e.DatagramPayloadChecksum == 0 { // it didn't share its datagram with the handshake
		copy(a.id[:], e.Header.DestConnectionID.Bytes())
		rebuilt = recoveries.told(a.id, e.Raw.Length)
	}
	if rebuilt != nil {
		rebuilt.at, rebuilt.frames = now, frames
		if len(frames) > 0 && !slices.ContainsFunc(frames, a.isNews) {
			recoveries.isLate(rebuilt)
		}
		a.recent = append(a.recent, rebuilt)
	} else {
		a.repeat(recoveries, frames, now, oneWay)
	}
	for _, f := range frames {
		a.add(f)
	}
}

// dropped takes a 1-RTT packet that QUIC has thrown away.
func (a *arrivals) dropped(recoveries *Recoveries, e *qlog.PacketDropped) {
	recoveries.mu.Lock()
	defer recoveries.mu.Unlock()
	if e.DatagramPayloadChecksum == 0 {
		recoveries.told(a.id, e.Raw.Length)
	}
}

// repeat takes frames that came in a packet of their own.
func (a *arrivals) repeat(recoveries *Recoveries, frames []qlog.StreamFrame, now time.Time, oneWay time.Duration) {
	a.recent = slices.DeleteFunc(a.recent, func(rebuilt *recovery) bool { return now.Sub(rebuilt.at) > oneWay })
	for _, rebuilt := range a.recent {
		for _, f := range frames {
			if slices.ContainsFunc(rebuilt.frames, func(g qlog.StreamFrame) bool { return overlap(f, g) }) {
				recoveries.isLate(rebuilt)
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
