// Package rquic puts forward erasure correction below an unmodified QUIC library: a net.PacketConn that adds the
// rQUIC header to the packets that QUIC writes and coded packets between them, and that takes the headers off,
// recovers lost packets and holds those behind a gap before QUIC reads them (Zverev et al., IEEE Access 2021, §III).
//
// QUIC packets are encrypted when they come here. Which of them have to be acknowledged, and so are protected, is
// known from an observer.Observer; should what it said and what is written ever differ, the connection fails with
// ErrOutOfStep, since a packet with the wrong label would falsify an experiment without a sign.
package rquic

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fecbench/fecbench/quic-impls/rquic/internal/coderate"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/coding"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/header"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/observer"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/series"
)

// ErrOutOfStep means that the QUIC library wrote another packet than the one that it had announced.
var ErrOutOfStep = errors.New("packets and their announcements are out of step")

// Settings of a Conn.
type Settings struct {
	// Code protects the packets; nil turns forward erasure correction off: every packet is unprotected.
	Code coding.Code
	// DecodeOnly leaves sent packets unprotected. Received packets may be protected with Code nevertheless.
	DecodeOnly bool
	// Overlap is the number of generations that a source packet belongs to (φ).
	Overlap int
	// GenerationMax is the largest size of a generation.
	GenerationMax int
	// Rate is the number of source packets for each coded one (Q).
	Rate float64
	// Adaptive, if any, takes the place of Rate. It needs the largest size of QUIC's packets.
	Adaptive   *coderate.Adaptive
	PacketSize int
	// Series, if any, takes the code rate over time, with the columns coderate.Columns.
	Series *series.Series
	// Repair, if any, takes what has been sent, received and rebuilt of repair over time, with the columns RepairColumns.
	Repair *series.Series
	// FlushAtStreamEnd completes generations early after a packet that ends a stream.
	FlushAtStreamEnd bool
	// HoldTimeout is the buffer timeout (BTO) of the receiver.
	HoldTimeout time.Duration
	// HoldRTTs, above 0, is the buffer timeout in smoothed RTTs, as soon as there is one.
	HoldRTTs float64
	// Fail is told of ErrOutOfStep, which no counter may outlive.
	Fail func(error)
}

// Counters of a Conn, over all of its connections, in packets.
type Counters struct {
	SourceSent, RepairSent         atomic.Int64
	SourceReceived, RepairReceived atomic.Int64
	Recovered                      atomic.Int64 // rebuilt from coded packets, and decrypted by QUIC
	RecoveredSpurious              atomic.Int64 // of those, the ones that came themselves later on
	RecoveredOutOfOrder            atomic.Int64 // their place in the order had gone before
	Malformed                      atomic.Int64 // received, unreadable, and dropped; or rebuilt, and no packet
	Delivered, Lost                atomic.Int64 // sent, and acknowledged or declared lost by QUIC

	// Generations that were completed, and the least and the largest number of source packets in one.
	Generations, SmallestGeneration, LargestGeneration atomic.Int64
}

// RepairColumns are the columns of the series "fec": a row for each change, of all connections together, as connection 0.
var RepairColumns = []string{"repair_sent", "repair_received", "packets_rebuilt"}

// countRepair adds one to a counter of repair, and a row to the series.
func (c *Conn) countRepair(counter *atomic.Int64) {
	if c.settings.Repair == nil {
		counter.Add(1)
		return
	}
	c.repairing.Lock() // rows follow each other as their counts do
	defer c.repairing.Unlock()
	counter.Add(1)
	c.settings.Repair.Add(0, float64(c.RepairSent.Load()), float64(c.RepairReceived.Load()), float64(c.Recovered.Load()))
}

// packetConn is the interface that the QUIC library looks for, large socket buffers included.
type packetConn interface {
	net.PacketConn
	SetReadBuffer(bytes int) error
	SetWriteBuffer(bytes int) error
}

// Conn is a net.PacketConn with forward erasure correction. One goroutine may read while others write.
type Conn struct {
	Counters
	packetConn
	settings Settings
	sending  sending
	buffers  buffers
	// recoveries hears what was rebuilt: the observer's; nil without one, and without a code.
	recoveries *observer.Recoveries
	receiving
	repairing sync.Mutex
}

// New wraps a connection.
func New(inner packetConn, settings Settings) *Conn {
	c := &Conn{packetConn: inner, settings: settings}
	c.sending.connections, c.sending.peers = map[header.ConnectionID]*sender{}, map[netip.AddrPort]*peer{}
	c.receivers, c.awaiting = map[receiverKey]*receiver{}, map[header.ConnectionID]*awaited{}
	return c
}

// Observe makes the connections known to o announce their packets here, and tell what they made of those that came. Without it
// packets that are rebuilt count at once.
func (c *Conn) Observe(o *observer.Observer) {
	if c.settings.Code != nil {
		c.judged = true
		c.recoveries = &o.Recoveries
		o.Open = func(number int) observer.Connection { return c.newSender(number) }
	}
}

// ReadCounters calls read while no datagram is taken in, so that counters of received and of recovered packets fit
// together.
func (c *Conn) ReadCounters(read func(*Counters)) {
	c.counting.Lock()
	defer c.counting.Unlock()
	read(&c.Counters)
}

// WriteTo sends a datagram of the QUIC library, and the coded packets that are due after it.
func (c *Conn) WriteTo(datagram []byte, to net.Addr) (int, error) {
	if header.IsLong(datagram) {
		return c.packetConn.WriteTo(datagram, to)
	}
	if len(datagram) <= header.Prefix {
		return 0, fmt.Errorf("cannot send a short-header packet of %d bytes", len(datagram))
	}
	if err := c.writeShort(datagram, to); err != nil {
		return 0, err
	}
	return len(datagram), nil
}

// ReadFrom returns the next datagram for the QUIC library. It is also what makes time pass for held packets.
func (c *Conn) ReadFrom(b []byte) (int, net.Addr, error) {
	for {
		if n, from, ok := c.next(b); ok {
			return n, from, nil
		}
		if err := c.setInnerDeadline(); err != nil {
			return 0, nil, err
		}
		n, from, err := c.packetConn.ReadFrom(c.buffer[:])
		if errors.Is(err, os.ErrDeadlineExceeded) && !c.readDeadlinePassed() {
			c.expire(time.Now())
			continue
		}
		if err != nil {
			return 0, nil, err
		}
		if datagram := c.receive(time.Now(), c.buffer[:n], from); datagram != nil {
			return copy(b, datagram), from, nil
		}
	}
}

// SetReadDeadline wakes a waiting ReadFrom when t has passed.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.deadlines.Lock()
	c.readDeadline = t
	c.deadlines.Unlock()
	return c.setInnerDeadline()
}

func (c *Conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// deadlines of reading: the one that was asked for, and that of the packet that is held longest.
type deadlines struct {
	sync.Mutex
	readDeadline, holdDeadline time.Time // zero: none
	innerDeadline              time.Time // what the inner connection has
}

func (c *Conn) setInnerDeadline() error {
	c.deadlines.Lock()
	defer c.deadlines.Unlock()
	earlier := c.readDeadline
	if earlier.IsZero() || !c.holdDeadline.IsZero() && c.holdDeadline.Before(earlier) {
		earlier = c.holdDeadline
	}
	if earlier.Equal(c.innerDeadline) {
		return nil
	}
	c.innerDeadline = earlier
	return c.packetConn.SetReadDeadline(earlier)
}

// wake makes a waiting ReadFrom return the packets that are ready.
func (c *Conn) wake() {
	c.deadlines.Lock()
	c.holdDeadline = time.Now()
	c.deadlines.Unlock()
	// A connection that is closed wakes its reader by itself.
	_ = c.setInnerDeadline()
}

func (c *Conn) readDeadlinePassed() bool {
	c.deadlines.Lock()
	defer c.deadlines.Unlock()
	return !c.readDeadline.IsZero() && !time.Now().Before(c.readDeadline)
}
