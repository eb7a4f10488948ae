package lossylink

import (
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/fecbench/fecbench/quic-impls/rquic/internal/lane"
)

// End of a link; a net.PacketConn that one goroutine reads.
type End struct {
	// Watch, if any, is called with every datagram when it is written.
	Watch func(datagram []byte)
	// Sent and Received, if any, are called with each datagram when the processor is done with it.
	Sent, Received func(at time.Duration, datagram []byte)
	// ReceivedBytes is the number of bytes that have come over the link.
	ReceivedBytes uint64

	link        *Link
	address     *net.UDPAddr
	peer        *End
	tag         uint64
	out         *direction
	perDatagram time.Duration // of the processor
	busyUntil   time.Duration // the processor
	leaving     []packet      // written, and in the processor's hands
	arriving    []packet      // has come, and is in the processor's hands
	hasNews     bool          // for the reader

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

func newEnd(l *Link, address *net.UDPAddr, out *direction, perDatagram time.Duration) *End {
	return &End{link: l, address: address, out: out, perDatagram: perDatagram, readable: make(chan struct{}, 1)}
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

// Address is the end's own; Peer is the other end.
func (e *End) Address() *net.UDPAddr { return e.address }
func (e *End) Peer() *End            { return e.peer }

func (e *End) LocalAddr() net.Addr              { return e.address }
func (e *End) SetDeadline(t time.Time) error    { return e.SetReadDeadline(t) }
func (e *End) SetWriteDeadline(time.Time) error { return nil } // writing never waits

// send takes what was written through the processor into the lane.
func (e *End) send(now time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, p := range e.written {
		p.at = e.process(now)
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

// finish has the processor be done at once with the datagrams that were written: the link ends, and they have to be in
// it.
func (e *End) finish() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.perDatagram, e.busyUntil = 0, 0
	for i := range e.leaving {
		e.leaving[i].at = 0
	}
}

// overhead is what a datagram has on the link besides its payload.
func (e *End) overhead() uint64 {
	if e.peer.address.IP.To4() == nil {
		return lane.OverheadIPv6
	}
	return lane.Overhead
}

// arrive takes a datagram that has crossed the link to the processor.
func (e *End) arrive(now time.Duration, datagram []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ReceivedBytes += uint64(len(datagram)) + e.overhead()
	e.arriving = append(e.arriving, packet{at: e.process(now), datagram: e.copyOf(datagram), from: e.peer.address})
}

// deliver puts datagrams that the processor is done with where they will be read.
func (e *End) deliver(now time.Duration) {
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
	e.hasNews = due > 0
}

// wakeReader tells the reader of what was delivered, and that its deadline has passed.
func (e *End) wakeReader() {
	e.mu.Lock()
	defer e.mu.Unlock()
	expires := !e.expired && !e.deadline.IsZero() && !time.Now().Before(e.deadline)
	e.expired = e.expired || expires
	if e.hasNews || expires {
		notify(e.readable)
	}
}

// next returns when the processor will be done with something, or when the deadline will pass.
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

// process returns when the processor, which takes one datagram after another, will be done with the next.
func (e *End) process(now time.Duration) time.Duration {
	e.busyUntil = max(e.busyUntil, now) + e.perDatagram
	return e.busyUntil
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

// countDue returns how many packets, from the first on, the processor is done with.
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
