// Package lossylink is a link inside one process, for tests: two net.PacketConns with a rate, a delay, a droptail
// queue and losses between them, by the rules of fecbench's emulated link (arrival, queue, serialization,
// propagation, losses at the exit). It needs no goroutine and computes all times from logical ones, so in a bubble of
// testing/synctest a transfer takes no longer than its computations.
package lossylink

import (
	"math"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/fecbench/fecbench/quic-impls/rquic/internal/content"
)

// Drops says whether the n-th datagram that leaves the link (from 0) is lost.
type Drops func(n uint64, datagram []byte) bool

// Nothing is lost.
func Nothing(uint64, []byte) bool { return false }

// Uniform loses each datagram with probability p: the oracle of fecbench's dropper, which see.
func Uniform(seed uint64, p float64) Drops {
	return func(n uint64, _ []byte) bool { return event(seed, n, 0, p) }
}

// GilbertElliott loses datagrams in bursts: the oracle of fecbench's dropper, which see. k and h are the
// probabilities that a datagram is delivered in the good and in the bad state.
func GilbertElliott(seed uint64, p, r, k, h float64) Drops {
	bad := false
	return func(n uint64, _ []byte) bool {
		loss, leave := 1-k, p
		if bad {
			loss, leave = 1-h, r
		}
		if event(seed, n, 1, leave) {
			bad = !bad
		}
		return event(seed, n, 0, loss)
	}
}

// event is whether an event of probability q happens to datagram n, by its draw j.
func event(seed, n, j uint64, q float64) bool {
	return content.Word(seed, 2*n+j)>>32 < uint64(math.Round(q*(1<<32)))
}

// Settings of one direction.
type Settings struct {
	Mbps  float64
	Delay time.Duration
	Queue int // bytes that may wait for their serialization
	Drops Drops
}

// New returns the two ends of a link. What is written to a, whatever the address, comes out of b, and the reverse.
func New(fromA, fromB Settings) (a, b *End) {
	ab, ba := newDirection(fromA), newDirection(fromB)
	addressA := &net.UDPAddr{IP: net.IPv4(10, 0, 1, 2).To4(), Port: 50000}
	addressB := &net.UDPAddr{IP: net.IPv4(10, 0, 2, 2).To4(), Port: 4433}
	return &End{address: addressA, peer: addressB, out: ab, in: ba}, &End{address: addressB, peer: addressA, out: ba, in: ab}
}

// End of a link; a net.PacketConn.
type End struct {
	address, peer net.Addr
	out, in       *direction
	watch         func(datagram []byte)
}

// Watch calls f with every datagram that is written to this end from now on.
func (e *End) Watch(f func(datagram []byte)) { e.watch = f }

// Inject hands the end a datagram that did not come through the link.
func (e *End) Inject(datagram []byte, from net.Addr) {
	e.in.mu.Lock()
	defer e.in.mu.Unlock()
	e.in.travelling = slices.Insert(e.in.travelling, 0, travelling{time.Now(), slices.Clone(datagram), from})
	e.in.changed()
}

func (e *End) WriteTo(b []byte, _ net.Addr) (int, error) {
	e.out.send(b, e.address)
	if e.watch != nil {
		e.watch(b)
	}
	return len(b), nil
}

func (e *End) ReadFrom(b []byte) (int, net.Addr, error) { return e.in.receive(b) }

func (e *End) SetReadDeadline(t time.Time) error {
	e.in.mu.Lock()
	defer e.in.mu.Unlock()
	e.in.deadline = t
	e.in.changed()
	return nil
}

// Close ends reading.
func (e *End) Close() error {
	e.in.mu.Lock()
	defer e.in.mu.Unlock()
	e.in.closed = true
	e.in.changed()
	return nil
}

func (e *End) LocalAddr() net.Addr              { return e.address }
func (e *End) SetDeadline(t time.Time) error    { return e.SetReadDeadline(t) }
func (e *End) SetWriteDeadline(time.Time) error { return nil } // writing never waits

type direction struct {
	settings Settings

	mu         sync.Mutex
	wake       chan struct{} // closed and replaced at every change
	deadline   time.Time
	closed     bool
	lineFree   time.Time // when the last datagram has been serialized
	exited     uint64
	travelling []travelling
}

type travelling struct {
	arrival  time.Time
	datagram []byte
	from     net.Addr
}

func newDirection(settings Settings) *direction {
	return &direction{settings: settings, wake: make(chan struct{})}
}

func (d *direction) changed() {
	close(d.wake)
	d.wake = make(chan struct{})
}

func (d *direction) send(b []byte, from net.Addr) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	if d.lineFree.Before(now) {
		d.lineFree = now
	}
	backlog := d.lineFree.Sub(now).Seconds() * d.settings.Mbps * 1e6 / 8
	const headers = 28 // IPv4 and UDP
	if int(backlog)+len(b)+headers > d.settings.Queue {
		return
	}
	d.lineFree = d.lineFree.Add(time.Duration(float64(len(b)+headers) * 8 / d.settings.Mbps * float64(time.Microsecond)))
	n := d.exited
	d.exited++
	if d.settings.Drops(n, b) {
		return
	}
	d.travelling = append(d.travelling, travelling{d.lineFree.Add(d.settings.Delay), slices.Clone(b), from})
	d.changed()
}

func (d *direction) receive(b []byte) (int, net.Addr, error) {
	for {
		n, from, wait, err := d.tryReceive(b)
		if wait == nil {
			return n, from, err
		}
		wait()
	}
}

// tryReceive returns a datagram that has arrived, or an error, or what to wait for.
func (d *direction) tryReceive(b []byte) (n int, from net.Addr, wait func(), err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	if d.closed {
		return 0, nil, nil, net.ErrClosed
	}
	if !d.deadline.IsZero() && !now.Before(d.deadline) {
		return 0, nil, nil, os.ErrDeadlineExceeded
	}
	next := d.deadline
	if len(d.travelling) > 0 {
		first := d.travelling[0]
		if !now.Before(first.arrival) {
			d.travelling = d.travelling[1:]
			return copy(b, first.datagram), first.from, nil, nil
		}
		if next.IsZero() || first.arrival.Before(next) {
			next = first.arrival
		}
	}
	wake := d.wake
	return 0, nil, func() { waitUntil(next, wake) }, nil
}

// waitUntil waits for a time, unless it is zero, or for wake.
func waitUntil(t time.Time, wake <-chan struct{}) {
	if t.IsZero() {
		<-wake
		return
	}
	timer := time.NewTimer(time.Until(t))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-wake:
	}
}
