package lossylink

import (
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/fecbench/fecbench/quic-impls/rquic/internal/header"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/lane"
)

// End of a link; a net.PacketConn that one goroutine reads.
type End struct {
	// Watch, if any, is called with every datagram that is written, and the time at which it is.
	Watch func(datagram []byte)
	// Sent and Received, if any, are called with each datagram when the processor is done with it.
	Sent, Received func(at time.Duration, datagram []byte)
	// ReceivedBytes is how many bytes have come over the link.
	ReceivedBytes uint64

	link      *Link
	address   *net.UDPAddr
	peer      *End
	tag       uint64
	out       *direction
	processor Processor
	busyUntil time.Duration       // the processor
	leaving   []packet            // written, and in the processor's hands
	arriving  []packet            // has come, and is in the processor's hands
	met       map[string]struct{} // connection IDs of the peer

	readable chan struct{} // something for a reader has changed

	mu       sync.Mutex // guards the rest
	written  []packet
	inbox    []packet
	spare    [][]byte
	deadline time.Time
	expired  bool // the deadline has passed
	closed   bool
}

type packet struct {
	at       time.Duration // when the processor is done with it
	datagram []byte
	from     net.Addr
}

func newEnd(l *Link, address *net.UDPAddr, out *direction, processor Processor) *End {
	return &End{
		link: l, address: address, out: out, processor: processor,
		met: map[string]struct{}{}, readable: make(chan struct{}, 1),
	}
}

// Inject hands the end a datagram that did not come over the link.
func (e *End) Inject(datagram []byte, from net.Addr) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.inbox = slices.Insert(e.inbox, 0, packet{datagram: slices.Clone(datagram), from: from})
	notify(e.readable)
}

// WriteTo sends a datagram to the other end.
func (e *End) WriteTo(b []byte, _ net.Addr) (int, error) {
	e.mu.Lock()
	e.written = append(e.written, packet{datagram: e.copyOf(b)})
	e.mu.Unlock()
	if e.Watch != nil {
		e.Watch(b)
	}
	notify(e.link.changed)
	return len(b), nil
}

// ReadFrom waits for a datagram, the deadline or Close.
func (e *End) ReadFrom(b []byte) (int, net.Addr, error) {
	for {
		if n, from, err := e.take(b); from != nil || err != nil {
			return n, from, err
		}
		<-e.readable
	}
}

// take copies what is to be read next to b; nothing when there is nothing yet.
func (e *End) take(b []byte) (n int, from net.Addr, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.closed:
		return 0, nil, net.ErrClosed
	case e.expired:
		return 0, nil, os.ErrDeadlineExceeded
	case len(e.inbox) == 0:
		return 0, nil, nil
	}
	first := e.inbox[0]
	e.inbox = slices.Delete(e.inbox, 0, 1)
	e.spare = append(e.spare, first.datagram)
	return copy(b, first.datagram), first.from, nil
}

func (e *End) SetReadDeadline(t time.Time) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.deadline, e.expired = t, !t.IsZero() && !time.Now().Before(t)
	if e.expired {
		notify(e.readable)
	} else if !t.IsZero() {
		notify(e.link.changed)
	}
	return nil
}

// Close ends reading.
func (e *End) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	notify(e.readable)
	return nil
}

func (e *End) LocalAddr() net.Addr              { return e.address }
func (e *End) SetDeadline(t time.Time) error    { return e.SetReadDeadline(t) }
func (e *End) SetWriteDeadline(time.Time) error { return nil } // writing never waits

// send takes what was written through the processor into the lane.
func (e *End) send(now time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, p := range e.written {
		p.at = e.process(now, e.processor.Datagram)
		e.leaving = append(e.leaving, p)
	}
	e.written = e.written[:0]
	due := countDue(e.leaving, now)
	for _, p := range e.leaving[:due] {
		e.out.lane.Send(p.datagram, e.tag, now) // what the link drops, it counts
		if e.Sent != nil {
			e.Sent(now, p.datagram)
		}
		e.spare = append(e.spare, p.datagram)
	}
	e.leaving = slices.Delete(e.leaving, 0, due)
}

// arrive takes a datagram that has crossed the link to the processor.
func (e *End) arrive(now time.Duration, datagram []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ReceivedBytes += uint64(len(datagram)) + lane.Overhead
	takes := e.processor.Datagram
	if e.processor.Handshake > 0 && e.meets(datagram) {
		takes += e.processor.Handshake
	}
	e.arriving = append(e.arriving, packet{at: e.process(now, takes), datagram: e.copyOf(datagram), from: e.peer.address})
}

// handOver gives what the processor is done with to the reader, and tells it that its deadline has passed.
func (e *End) handOver(now time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	due := countDue(e.arriving, now)
	for _, p := range e.arriving[:due] {
		if e.Received != nil {
			e.Received(now, p.datagram)
		}
		e.inbox = append(e.inbox, p)
	}
	e.arriving = slices.Delete(e.arriving, 0, due)
	expires := !e.expired && !e.deadline.IsZero() && !time.Now().Before(e.deadline)
	e.expired = e.expired || expires
	if due > 0 || expires {
		notify(e.readable)
	}
}

// next is when the processor will be done with something, or the deadline will pass.
func (e *End) next() (earliest time.Duration, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.expired && !e.deadline.IsZero() {
		earliest, ok = e.deadline.Sub(e.link.begun), true
	}
	for _, waiting := range [][]packet{e.leaving, e.arriving} {
		if len(waiting) > 0 && (!ok || waiting[0].at < earliest) {
			earliest, ok = waiting[0].at, true
		}
	}
	return earliest, ok
}

// process is when the processor, which does one thing after another, will be done with what takes so long.
func (e *End) process(now, takes time.Duration) time.Duration {
	e.busyUntil = max(e.busyUntil, now) + takes
	return e.busyUntil
}

// meets reports whether a datagram is the first of a connection: its long header names the peer's connection ID
// (RFC 9000, section 17.2), which stays as long as a handshake lasts.
func (e *End) meets(datagram []byte) bool {
	if !header.IsLong(datagram) || len(datagram) < sizeBeforeIDs {
		return false
	}
	ids := datagram[sizeBeforeIDs:]
	peers, ok := afterID(ids) // its own comes first
	if !ok {
		return false
	}
	rest, ok := afterID(peers)
	id := string(peers[:len(peers)-len(rest)])
	_, known := e.met[id]
	e.met[id] = struct{}{}
	return ok && !known
}

// sizeBeforeIDs is the size of the first byte and the version.
const sizeBeforeIDs = 5

// afterID is what follows a connection ID with its length before it; false when it is cut.
func afterID(b []byte) (rest []byte, ok bool) {
	if len(b) == 0 || len(b) < 1+int(b[0]) {
		return nil, false
	}
	return b[1+int(b[0]):], true
}

// copyOf a datagram, in memory that was used before where there is any.
func (e *End) copyOf(datagram []byte) []byte {
	last := len(e.spare) - 1
	if last < 0 {
		return slices.Clone(datagram)
	}
	b := e.spare[last]
	e.spare = e.spare[:last]
	return append(b[:0], datagram...)
}

// countDue is how many packets, from the first on, the processor is done with.
func countDue(packets []packet, now time.Duration) int {
	for i, p := range packets {
		if p.at > now {
			return i
		}
	}
	return len(packets)
}

// notify makes a channel of capacity 1 full.
func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
