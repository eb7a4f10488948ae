package rquic

import (
	"time"

	"github.com/fecbench/fecbench/quic-impls/rquic/internal/coding"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/header"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/hold"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/observer"
)

// The rQUIC header is not authenticated, so an attacker who sees packets can insert forged ones. QUIC decrypts every packet,
// and reports whether it was authentic. A refused packet is taken back. A packet far ahead of all confirmed ones waits for
// its judgement. A recovered packet counts once it is confirmed.

// maxAwaited is the number of packets handed to QUIC whose judgement is awaited: more than its queue takes.
const maxAwaited = 1024

// maxAhead is how far a packet may be ahead of the newest authentic one, besides those that are held or await their judgement:
// little enough for a generation of the largest size to stay among the decoder's newest ids.
const maxAhead = 32

// maxKept is the number of coded packets that are kept, to be tried once more when another one was forged.
const maxKept = 8

// handed is a packet that QUIC was given.
type handed struct {
	receiver       *receiver // nil: unprotected
	origin         origin
	id, generation int64
	late           bool               // its place in the order had gone
	recovery       *observer.Recovery // nil: it came, or nobody hears of what is rebuilt
	length         int
}

// origin is the origin of a packet for QUIC.
type origin uint8

const (
	came  origin = iota // from the network
	ahead               // from the network, and too far ahead to be believed
	built               // from coded packets
)

// awaited are the packets to a connection ID whose judgement is awaited, in order.
type awaited struct {
	queue queue[handed]
	used  time.Time
	known bool // QUIC has judged a packet to it
}

// coded is a coded packet that was received.
type coded struct {
	generation, last int64
	size             int
	payload          []byte
}

// await notes that QUIC reads a packet.
func (c *Conn) await(now time.Time, packet []byte, h handed) {
	if !c.judged {
		return
	}
	if !header.IsShort(packet) { // QUIC tells nothing of it
		if h.origin == built {
			c.Malformed.Add(1)
		}
		return
	}
	id := header.ConnectionID(packet[1:header.Prefix])
	a := c.awaiting[id]
	if a == nil {
		if len(c.awaiting) >= maxReceivers {
			c.dropAwaited()
		}
		a = &awaited{}
		c.awaiting[id] = a
	}
	a.used = now
	h.length = len(packet)
	if a.queue.length() >= maxAwaited {
		a.queue.take()
	}
	a.queue.add(h)
}

// dropAwaited forgets the connection ID that was used least recently, rather one that QUIC doesn't know.
func (c *Conn) dropAwaited() {
	var idlest header.ConnectionID
	var least *awaited
	for id, a := range c.awaiting {
		if least == nil || least.known && !a.known || least.known == a.known && a.used.Before(least.used) {
			idlest, least = id, a
		}
	}
	delete(c.awaiting, idlest)
}

// judge takes QUIC's judgement on a packet that it was given. It returns what was rebuilt, if that is it; known is false where
// nobody can tell which packet it was, or QUIC left one out.
func (c *Conn) judge(j observer.Judgement) (rebuilt *observer.Recovery, known bool) {
	c.counting.Lock()
	defer c.counting.Unlock()
	a := c.awaiting[j.ConnectionID]
	if a == nil {
		return nil, j.Unread
	}
	a.known = true
	if j.Unread {
		a.queue.takeLast()
		return nil, true
	}
	h, ok := a.queue.take()
	known = ok && h.length == j.Length
	for ok && h.length != j.Length { // QUIC said nothing of what precedes
		h, ok = a.queue.take()
	}
	if !ok || h.receiver == nil {
		return nil, known
	}
	if j.Authentic {
		c.confirm(h)
	} else {
		c.refuse(h)
	}
	return h.recovery, known
}

// confirm counts an authentic packet, and believes what it says of the order.
func (c *Conn) confirm(h handed) {
	r := h.receiver
	switch h.origin {
	case built:
		c.countRebuilt(r, h)
	case ahead:
		r.order.move(h.id, h.generation)
		fallthrough
	case came:
		if r.rebuilt.take(h.id) {
			c.RecoveredSpurious.Add(1)
		}
	}
	if !r.confirmed || h.id > r.authentic {
		r.confirmed, r.authentic = true, h.id
	}
}

// countRebuilt counts a rebuilt packet that equals the lost one.
func (c *Conn) countRebuilt(r *receiver, h handed) {
	c.countRepair(&c.Recovered)
	if h.late {
		c.RecoveredOutOfOrder.Add(1)
	}
	if r.rebuilt.confirm(h.id) {
		c.RecoveredSpurious.Add(1)
	}
}

// refuse takes back what a forged packet, or one that was rebuilt with its help, has done.
func (c *Conn) refuse(h handed) {
	r := h.receiver
	switch h.origin {
	case ahead:
		return
	case came:
		if !r.confirmed {
			c.restart(r)
			return
		}
		r.decoder.Forget(h.id)
	case built:
		c.Malformed.Add(1)
		r.forgetRebuilt(h.id, h.generation)
	}
	r.hold.Retreat(r.authentic)
	c.tryAgain(r)
}

// restart makes a receiver begin anew that had nothing to go by but forged packets.
func (c *Conn) restart(r *receiver) {
	c.released = r.hold.ReleaseAll(c.released)
	c.deliver()
	c.wake()
	r.order, r.decoder, r.kept = order{}, c.settings.Code.NewDecoder(), nil
	r.hold = hold.New[delivery](c.settings.HoldTimeout)
}

// forgetRebuilt takes a packet back that was rebuilt and isn't one. The oldest coded packet of its generation is taken for the
// forged one.
func (r *receiver) forgetRebuilt(id, generation int64) {
	r.decoder.Forget(id)
	r.rebuilt.forget(id)
	for i, k := range r.kept {
		if k.generation == generation {
			r.spareKept = k.payload
			r.kept = append(r.kept[:i], r.kept[i+1:]...)
			return
		}
	}
}

// tryAgain gives the decoder the coded packets once more, and wakes the reader if packets are rebuilt.
func (c *Conn) tryAgain(r *receiver) {
	now := time.Now()
	for i := 0; i < len(r.kept); {
		k, kept := r.kept[i], len(r.kept)
		c.recover(now, r, r.decoder.Repair(k.generation, k.last, k.size, k.payload), r.prefix[:], r.from)
		if len(r.kept) == kept {
			i++
		}
	}
	if len(c.released) > 0 {
		c.deliver()
		c.wake()
	}
}

// keep remembers a coded packet, in the place of the oldest.
func (r *receiver) keep(generation, last int64, size int, payload []byte) {
	if len(r.kept) == maxKept {
		r.spareKept = r.kept[0].payload
		r.kept = append(r.kept[:0], r.kept[1:]...)
	}
	r.kept = append(r.kept, coded{generation: generation, last: last, size: size, payload: append(r.spareKept[:0], payload...)})
	r.spareKept = nil
}

// believes reports whether a packet with a place in the order is near enough to those that were authentic.
func (r *receiver) believes(id int64, generations coding.Range, pending int) bool {
	reach := int64(maxAhead + r.hold.Held() + pending)
	return id <= r.authentic+reach && generations.Last <= r.order.generation+reach
}
