// Package lossylink is fecbench's emulated link inside one process: net.PacketConns with a lane for each direction between
// them, in the time of a bubble of testing/synctest, so that a transfer takes no longer than its computations.
//
// One goroutine, that of Run, hands over everything. It does so when nothing else in the bubble can run any more at that
// instant, in an order of its own: so what an endpoint meets depends neither on the order in which goroutines run, nor on
// that in which timers of one instant fire, which Go shuffles. And nothing runs while it is in C, where a goroutine can
// lose its turn to others.
package lossylink

import (
	"context"
	"fmt"
	"net"
	"testing/synctest"
	"time"

	"github.com/fecbench/fecbench/quic-impls/rquic/internal/lane"
)

// Link is shared by all ends that are connected to it.
type Link struct {
	// AtRest, if any, is called now and then when nothing in the bubble can run at this instant, with the datagrams that were
	// carried so far.
	AtRest func(carried uint64)

	begun    time.Time
	up, down *direction
	ends     []*End
	changed  chan struct{} // an end has something for Run
	buffer   [lane.PayloadMax]byte
	// starts is from when the lanes are to count, if Run has not yet told them.
	starts *time.Duration
}

type direction struct {
	lane   *lane.Lane
	loses  func(n uint64, datagram []byte) bool
	judged uint64
}

// New returns a link that begins now. The lanes may have been used before.
func New(up, down Settings, upLane, downLane *lane.Lane) (*Link, error) {
	l := &Link{
		begun: time.Now(), changed: make(chan struct{}, 1),
		up: &direction{lane: upLane, loses: up.Loses}, down: &direction{lane: downLane, loses: down.Loses},
	}
	if err := upLane.Begin(up.Text); err != nil {
		return nil, fmt.Errorf("up: %w", err)
	}
	if err := downLane.Begin(down.Text); err != nil {
		return nil, fmt.Errorf("down: %w", err)
	}
	return l, nil
}

// Connect adds a client and its server. Datagrams that are written to one, whatever the address, come out of the other, once
// they have crossed the link. Each has a processor that takes some time for each datagram that is sent or received.
func (l *Link) Connect(client, server *net.UDPAddr, perDatagram time.Duration) (clientEnd, serverEnd *End) {
	clientEnd = newEnd(l, client, l.up, perDatagram)
	serverEnd = newEnd(l, server, l.down, perDatagram)
	clientEnd.peer, serverEnd.peer = serverEnd, clientEnd
	for _, e := range []*End{clientEnd, serverEnd} {
		e.tag = uint64(len(l.ends))
		l.ends = append(l.ends, e)
	}
	return clientEnd, serverEnd
}

// Start counts the lanes' schedules and outages from now on.
func (l *Link) Start() {
	now := time.Since(l.begun)
	l.starts = &now
}

// BeginFilling is called before IsFull is asked at intervals whether the link is full downwards.
func (l *Link) BeginFilling(fullShare float64, window time.Duration) {
	l.down.lane.BeginFilling(fullShare, window)
}

// IsFull reports whether the link has carried its full share downwards for the window.
func (l *Link) IsFull(now time.Duration) bool { return l.down.lane.IsFull(now) }

// Wake has AtRest called at this instant.
func (l *Link) Wake() {
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// Run carries datagrams until ctx ends.
func (l *Link) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		synctest.Wait()
		now := time.Since(l.begun)
		l.carry(now)
		if l.AtRest != nil {
			l.AtRest(l.up.judged + l.down.judged)
		}
		for _, e := range l.ends { // from here on, others can run
			e.wakeReader()
		}
		if next, ok := l.next(); ok {
			timer.Reset(next - now)
		} else {
			timer.Stop()
		}
		select {
		case <-timer.C:
		case <-l.changed:
		case <-ctx.Done():
			synctest.Wait()
			for _, e := range l.ends {
				e.finish()
			}
			l.carry(time.Since(l.begun)) // what was sent last is in the link
			return
		}
	}
}

// carry takes what the ends have sent into the lanes, and what has left these to the ends.
func (l *Link) carry(now time.Duration) {
	if l.starts != nil {
		l.up.lane.Start(*l.starts)
		l.down.lane.Start(*l.starts)
		l.starts = nil
	}
	for _, e := range l.ends {
		e.send(now)
	}
	for _, d := range []*direction{l.up, l.down} {
		for l.receive(d, now) {
		}
	}
	for _, e := range l.ends {
		e.deliver(now)
	}
}

// receive takes one datagram out of a lane; false when none has left it.
func (l *Link) receive(d *direction, now time.Duration) bool {
	exit, ok := d.lane.Receive(now, &l.buffer)
	if !ok {
		return false
	}
	n, datagram := d.judged, l.buffer[:exit.Length]
	d.judged++
	if lost := exit.Lost || d.loses != nil && d.loses(n, datagram); !lost {
		l.ends[exit.Tag].peer.arrive(now, datagram)
	}
	return true
}

// next returns when the link will have something to do, if nothing changes before.
func (l *Link) next() (earliest time.Duration, ok bool) {
	consider := func(at time.Duration, has bool) {
		if has && (!ok || at < earliest) {
			earliest, ok = at, true
		}
	}
	consider(l.up.lane.NextExit())
	consider(l.down.lane.NextExit())
	for _, e := range l.ends {
		consider(e.next())
	}
	return earliest, ok
}
