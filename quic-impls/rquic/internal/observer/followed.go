package observer

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/quic-go/quic-go/qlog"
	"github.com/quic-go/quic-go/qlogwriter"
)

// Followed is a connection of which somebody has to know more than it tells: its number in the Recording and, of the unidirectional
// streams that it sends, what was acknowledged.
type Followed struct {
	// Changed has something whenever an acknowledgement came.
	Changed chan struct{}
	number  int

	mu      sync.Mutex
	streams map[qlog.StreamID]*outgoing
	unknown []sentFrames // packets that were neither acknowledged nor declared lost, in order
}

// outgoing is a stream that is sent.
type outgoing struct {
	acknowledged received
	copies       int // frames of it whose fate is unknown
}

// sentFrames are frames of unidirectional streams in one packet.
type sentFrames struct {
	number int64
	frames []*qlog.StreamFrame
}

type followedKey struct{}

// Follow returns a context for a connection that is to be followed: of dialing it, or from quic.Transport.ConnContext.
func Follow(ctx context.Context) context.Context {
	f := &Followed{Changed: make(chan struct{}, 1), streams: map[qlog.StreamID]*outgoing{}}
	return context.WithValue(ctx, followedKey{}, f)
}

// FollowedBy returns the record in a connection's context; nil if the connection is not followed.
func FollowedBy(ctx context.Context) *Followed {
	f, _ := ctx.Value(followedKey{}).(*Followed)
	return f
}

// Number is the number of the connection in the Recording.
func (f *Followed) Number() int { return f.number }

// Acknowledged reports whether all of a stream of some bytes was acknowledged, with its end.
func (f *Followed) Acknowledged(id qlog.StreamID, size int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.streams[id]
	return s != nil && s.isWhole(size)
}

// Settled reports whether it is acknowledged, and nothing is on its way that might have to be sent again.
func (f *Followed) Settled(id qlog.StreamID, size int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.streams[id]
	return s != nil && s.copies == 0 && s.isWhole(size)
}

// Forget records that nobody will ask about a stream any more.
func (f *Followed) Forget(id qlog.StreamID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.streams, id)
}

func (s *outgoing) isWhole(size int64) bool {
	return s.acknowledged.ended && len(s.acknowledged.ranges) == 1 && s.acknowledged.ranges[0] == span{0, size}
}

// follow counts and follows what an event says.
func (t *trace) follow(event qlogwriter.Event) {
	if e, dropped := event.(qlog.DatagramDropped); dropped {
		if e.Direction == qlog.DirectionReceiving {
			t.observer.Datagrams.Overflowed.Add(1)
		} else {
			t.observer.Datagrams.Dropped.Add(1)
		}
	}
	if t.followed == nil {
		return
	}
	switch e := event.(type) {
	case qlog.PacketSent:
		if e.Header.PacketType == qlog.PacketType1RTT {
			t.followed.sent(int64(e.Header.PacketNumber), e.Frames)
		}
	case qlog.PacketReceived:
		if e.Header.PacketType == qlog.PacketType1RTT {
			t.followed.received(e.Frames)
		}
	case qlog.PacketLost:
		if e.Header.PacketType == qlog.PacketType1RTT {
			t.followed.lost(int64(e.Header.PacketNumber))
		}
	}
}

func (f *Followed) sent(number int64, frames []qlog.Frame) {
	f.mu.Lock()
	defer f.mu.Unlock()
	packet := sentFrames{number: number}
	for _, frame := range frames {
		stream, ok := frame.Frame.(*qlog.StreamFrame)
		if !ok || stream.StreamID%4 < 2 { // bidirectional
			continue
		}
		packet.frames = append(packet.frames, stream)
		if f.streams[stream.StreamID] == nil {
			f.streams[stream.StreamID] = &outgoing{}
		}
		f.streams[stream.StreamID].copies++
	}
	if len(packet.frames) > 0 {
		f.unknown = append(f.unknown, packet)
	}
}

func (f *Followed) received(frames []qlog.Frame) {
	for _, frame := range frames {
		if ack, ok := frame.Frame.(*qlog.AckFrame); ok {
			f.resolve(func(p sentFrames) bool { return acknowledges(ack, p.number) }, true)
			select {
			case f.Changed <- struct{}{}:
			default:
			}
		}
	}
}

func acknowledges(ack *qlog.AckFrame, number int64) bool {
	// The newest packets are in the first range (RFC 9000, §19.3.1).
	at, _ := slices.BinarySearchFunc(ack.AckRanges, number, func(r qlog.AckRange, number int64) int {
		return cmp.Compare(number, int64(r.Smallest))
	})
	return at < len(ack.AckRanges) && number <= int64(ack.AckRanges[at].Largest)
}

// lost takes a packet that was declared lost: quic-go sends again what it had, and an acknowledgement that comes after all
// changes nothing.
func (f *Followed) lost(number int64) {
	f.resolve(func(p sentFrames) bool { return p.number == number }, false)
}

// resolve takes the packets whose fate is known now.
func (f *Followed) resolve(isKnown func(sentFrames) bool, acknowledged bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.unknown = slices.DeleteFunc(f.unknown, func(p sentFrames) bool {
		if !isKnown(p) {
			return false
		}
		for _, frame := range p.frames {
			s := f.streams[frame.StreamID]
			if s == nil {
				continue // nobody asks any more
			}
			s.copies--
			if acknowledged {
				s.acknowledged.add(spanOf(*frame))
				s.acknowledged.ended = s.acknowledged.ended || frame.Fin
			}
		}
		return true
	})
}
