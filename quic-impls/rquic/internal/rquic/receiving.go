package rquic

import (
	"net"
	"net/netip"
	"time"

	"github.com/fecbench/fecbench/quic-impls/rquic/internal/coding"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/header"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/hold"
)

// maxReceivers bounds the memory that strangers can make us spend, since nothing authenticates the rQUIC
// header: beyond it, the receiver that was idle longest gives way.
const maxReceivers = 64

// maxDatagram is the longest datagram that is read; a longer one is cut, and QUIC will refuse what remains.
const maxDatagram = 2048

// receiving belongs to the one goroutine that reads, except for the deadlines.
type receiving struct {
	deadlines
	receivers map[receiverKey]*receiver
	ready     []delivery // leaves before anything else is read
	buffer    [maxDatagram]byte
	symbol    []byte // reused
}

type receiverKey struct {
	from         netip.AddrPort
	connectionID [header.ConnectionIDLength]byte
}

// receiver is the receiving side of one QUIC connection, as long as its peer uses one connection ID.
type receiver struct {
	decoder  coding.Decoder
	hold     *hold.Buffer[delivery]
	lastUsed time.Time
}

type delivery struct {
	datagram []byte
	from     net.Addr
}

// receive takes a datagram from the network. It returns what the QUIC library shall
// read at once; what comes through the hold buffer is appended to c.ready instead.
func (c *Conn) receive(now time.Time, datagram []byte, from net.Addr) []byte {
	if header.IsLong(datagram) {
		return datagram
	}
	prefix, h, rest, err := header.Parse(datagram)
	if err != nil {
		c.Malformed.Add(1)
		return nil
	}
	if h.Kind == header.Unprotected {
		return append(prefix, rest...) // moves rest to the front, in place
	}
	if c.settings.Code == nil {
		c.Malformed.Add(1)
		return nil
	}
	c.receiveCoded(now, prefix, h, rest, from)
	return nil
}

func (c *Conn) receiveCoded(now time.Time, prefix []byte, h header.Header, rest []byte, from net.Addr) {
	r := c.receiver(now, from, prefix)
	var recovered []coding.Recovered
	var source []byte
	if h.Kind == header.Source {
		c.SourceReceived.Add(1)
		source = append(append(make([]byte, 0, len(prefix)+len(rest)), prefix...), rest...)
		c.symbol = appendSymbol(c.symbol[:0], source)
		recovered = r.decoder.Source(h.Generation, h.ID, c.symbol)
	} else {
		c.RepairReceived.Add(1)
		recovered = r.decoder.Repair(h.Generation, h.ID, h.Size, rest)
	}
	for _, symbol := range recovered {
		packet, ok := packetOfSymbol(symbol.Symbol, prefix)
		if !ok {
			c.Malformed.Add(1)
			continue
		}
		c.Recovered.Add(1)
		if r.hold.Passed(symbol.ID) {
			c.RecoveredLate.Add(1)
		}
		c.ready = r.hold.Insert(now, symbol.Generation, symbol.ID, delivery{packet, from}, c.ready)
	}
	if source != nil {
		c.ready = r.hold.Receive(now, h.Generation, h.ID, delivery{source, from}, c.ready)
	}
	c.setHoldDeadline()
}

// receiver finds or makes the receiver of a packet.
func (c *Conn) receiver(now time.Time, from net.Addr, prefix []byte) *receiver {
	key := receiverKey{connectionID: [header.ConnectionIDLength]byte(prefix[1:])}
	if udp, ok := from.(*net.UDPAddr); ok {
		key.from = udp.AddrPort()
	}
	r := c.receivers[key]
	if r == nil {
		if len(c.receivers) >= maxReceivers {
			c.dropIdlest()
		}
		r = &receiver{decoder: c.settings.Code.NewDecoder(), hold: hold.New[delivery](c.settings.HoldTimeout)}
		c.receivers[key] = r
	}
	r.lastUsed = now
	return r
}

func (c *Conn) dropIdlest() {
	var idlest receiverKey
	var since time.Time
	for key, r := range c.receivers {
		if since.IsZero() || r.lastUsed.Before(since) {
			idlest, since = key, r.lastUsed
		}
	}
	c.ready = c.receivers[idlest].hold.ReleaseAll(c.ready)
	delete(c.receivers, idlest)
}

// expire releases the packets that were held for long enough.
func (c *Conn) expire(now time.Time) {
	for _, r := range c.receivers {
		c.ready = r.hold.Expire(now, c.ready)
	}
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
