package rquic

import (
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/fecbench/fecbench/quic-impls/rquic/internal/coding"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/header"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/hold"
)

// maxReceivers bounds the memory that strangers can make us spend, since nothing authenticates the rQUIC
// header: beyond it, the receiver that was idle longest gives way.
const maxReceivers = 64

// maxDatagram is the longest datagram that is read; a longer one is cut, and QUIC will refuse the rest.
const maxDatagram = 2048

// maxSpare is the number of buffers that are kept for packets to come: as many as one receiver can hold.
const maxSpare = 128

// receiving belongs to the goroutine that reads, and to QUIC's when it judges packets that were read.
type receiving struct {
	deadlines
	counting  sync.Mutex // guards the rest, while a datagram or QUIC's judgement changes it
	receivers map[receiverKey]*receiver
	judged    bool // QUIC tells what it made of the packets that it was given
	awaiting  map[header.ConnectionID]*awaited
	ready     queue[delivery] // leaves before anything else is read
	released  []delivery      // reused
	spare     []*[maxDatagram]byte
	buffer    [maxDatagram]byte
	symbol    []byte // reused
}

type receiverKey struct {
	from         netip.AddrPort
	connectionID header.ConnectionID
}

// receiver is the receiving side of one QUIC connection, as long as its peer uses one connection ID.
type receiver struct {
	order    order
	decoder  coding.Decoder
	rebuilt  rebuilt
	hold     *hold.Buffer[delivery]
	lastUsed time.Time

	confirmed bool    // QUIC confirmed a packet
	authentic int64   // the newest that it confirmed, or the first that came
	kept      []coded // the newest, the oldest first
	spareKept []byte  // a payload's, to be used again
	prefix    [header.Prefix]byte
	from      net.Addr
}

// delivery is a packet for the QUIC library, in a buffer that is used again once the packet was read.
type delivery struct {
	buffer *[maxDatagram]byte
	length int
	from   net.Addr
	handed
}

// receive takes a datagram from the network. It returns the bytes that the QUIC library shall read at once; packets
// that come through the hold buffer are added to c.ready instead.
func (c *Conn) receive(now time.Time, datagram []byte, from net.Addr) []byte {
	if header.IsLong(datagram) {
		return datagram
	}
	c.counting.Lock()
	defer c.counting.Unlock()
	prefix, h, rest, err := header.Parse(datagram)
	if err != nil {
		c.Malformed.Add(1)
		return nil
	}
	if h.Kind == header.Unprotected {
		packet := append(prefix, rest...) // moves rest to the front, in place
		if c.settings.Code != nil {
			c.await(now, packet, handed{})
		}
		return packet
	}
	if code := c.settings.Code; code == nil || h.Kind != header.Source && h.Kind != code.Kind() {
		c.Malformed.Add(1)
		return nil
	}
	r := c.receiver(now, from, prefix)
	if h.Kind == header.Source {
		c.receiveSource(now, r, append(prefix, rest...), h, from)
	} else {
		c.receiveCoded(now, r, prefix, h, rest, from)
	}
	c.deliver()
	c.setHoldDeadline()
	return nil
}

func (c *Conn) receiveSource(now time.Time, r *receiver, packet []byte, h header.Header, from net.Addr) {
	c.SourceReceived.Add(1)
	order := r.order
	id, generations := order.source(h)
	d := c.newDelivery(from)
	d.length = copy(d.buffer[:], packet)
	d.handed = handed{receiver: r, id: id, generation: generations.Last}
	if !r.order.started {
		r.authentic = id
	} else if c.judged && !r.believes(id, generations, c.pending(packet)) {
		d.origin = ahead
		c.released = append(c.released, d)
		return
	}
	r.order = order
	r.rebuilt.awaited(id).Came(packet)
	if !c.judged && r.rebuilt.take(id) {
		c.RecoveredSpurious.Add(1)
	}
	c.symbol = appendSymbol(c.symbol[:0], packet)
	recovered := r.decoder.Source(id, generations, c.symbol)
	c.recover(now, r, recovered, packet[:header.Prefix], from)
	c.released = r.hold.Receive(now, generations.Last, id, d, c.released)
}

func (c *Conn) receiveCoded(now time.Time, r *receiver, prefix []byte, h header.Header, payload []byte, from net.Addr) {
	c.countRepair(&c.RepairReceived)
	last, generation, ok := r.order.coded(h)
	if !ok || c.judged && last > r.order.id+header.MaxGenerationSize {
		return // nothing has come, or too little for as many as have to be rebuilt
	}
	if c.judged {
		copy(r.prefix[:], prefix)
		r.from = from
		r.keep(generation, last, int(h.Size), payload)
	}
	c.recover(now, r, r.decoder.Repair(generation, last, int(h.Size), payload), prefix, from)
}

// recover puts recovered packets in their places.
func (c *Conn) recover(now time.Time, r *receiver, recovered []coding.Recovered, prefix []byte, from net.Addr) {
	for _, symbol := range recovered {
		d := c.newDelivery(from)
		packet, ok := appendPacket(d.buffer[:0], symbol.Symbol, prefix)
		if !ok {
			c.Malformed.Add(1)
			r.forgetRebuilt(symbol.ID, symbol.Generation)
			c.spare = append(c.spare, d.buffer)
			continue
		}
		d.length = len(packet)
		d.handed = handed{
			receiver: r, origin: built, id: symbol.ID, generation: symbol.Generation, late: r.hold.Passed(symbol.ID),
			recovery: c.recoveries.Rebuilt(packet),
		}
		r.rebuilt.add(symbol.ID, d.recovery)
		if !c.judged {
			c.countRebuilt(r, d.handed)
		}
		c.released = r.hold.Insert(now, symbol.Generation, symbol.ID, d, c.released)
	}
}

// newDelivery has a buffer, and no packet yet.
func (c *Conn) newDelivery(from net.Addr) delivery {
	last := len(c.spare) - 1
	if last < 0 {
		return delivery{buffer: new([maxDatagram]byte), from: from}
	}
	d := delivery{buffer: c.spare[last], from: from}
	c.spare = c.spare[:last]
	return d
}

// deliver makes ready the packets that the hold buffers released.
func (c *Conn) deliver() {
	for _, d := range c.released {
		c.ready.add(d)
	}
	c.released = c.released[:0]
}

// pending is the number of packets to a connection ID whose judgement is awaited.
func (c *Conn) pending(packet []byte) int {
	a := c.awaiting[header.ConnectionID(packet[1:header.Prefix])]
	if a == nil {
		return 0
	}
	return a.queue.length()
}

// next copies the next packet that is ready to b; false when there is none.
func (c *Conn) next(b []byte) (int, net.Addr, bool) {
	c.counting.Lock()
	defer c.counting.Unlock()
	d, ok := c.ready.take()
	if !ok {
		return 0, nil, false
	}
	n := copy(b, d.buffer[:d.length])
	c.await(d.receiver.lastUsed, b[:n], d.handed)
	if len(c.spare) < maxSpare {
		c.spare = append(c.spare, d.buffer)
	}
	return n, d.from, true
}

// receiver finds or makes the receiver of a packet.
func (c *Conn) receiver(now time.Time, from net.Addr, prefix []byte) *receiver {
	key := receiverKey{addressOf(from), header.ConnectionID(prefix[1:])}
	r := c.receivers[key]
	if r == nil {
		if len(c.receivers) >= maxReceivers {
			c.dropIdlest()
		}
		r = &receiver{decoder: c.settings.Code.NewDecoder(), hold: hold.New[delivery](c.settings.HoldTimeout)}
		c.receivers[key] = r
	}
	r.lastUsed = now
	if c.settings.HoldRTTs > 0 {
		if rtt := c.smoothedRTT(key.from); rtt > 0 {
			r.hold.SetTimeout(time.Duration(c.settings.HoldRTTs * float64(rtt)))
		}
	}
	return r
}

// smoothedRTT to a peer; 0 before it is known.
func (c *Conn) smoothedRTT(address netip.AddrPort) time.Duration {
	c.sending.Lock()
	defer c.sending.Unlock()
	peer := c.sending.peers[address]
	if peer == nil {
		return 0
	}
	return time.Duration(peer.smoothedRTT.Load())
}

func (c *Conn) dropIdlest() {
	var idlest receiverKey
	var since time.Time
	for key, r := range c.receivers {
		if since.IsZero() || r.lastUsed.Before(since) {
			idlest, since = key, r.lastUsed
		}
	}
	c.released = c.receivers[idlest].hold.ReleaseAll(c.released)
	delete(c.receivers, idlest)
}

// expire releases the packets that were held for long enough.
func (c *Conn) expire(now time.Time) {
	c.counting.Lock()
	defer c.counting.Unlock()
	for _, r := range c.receivers {
		c.released = r.hold.Expire(now, c.released)
	}
	c.deliver()
	c.setHoldDeadline()
}

func (c *Conn) setHoldDeadline() {
	var earliest time.Time
	for _, r := range c.receivers {
		if deadline, ok := r.hold.Deadline(); ok && (earliest.IsZero() || deadline.Before(earliest)) {
			earliest = deadline
		}
	}
	c.deadlines.Lock()
	c.holdDeadline = earliest
	c.deadlines.Unlock()
}
