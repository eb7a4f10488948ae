package rquic

import (
	"encoding/binary"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/fecbench/fecbench/quic-impls/rquic/internal/coding"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/header"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/observer"
)

// closedLinger is how long a closed connection is remembered: quic-go repeats its last
// packet to whoever still writes to it, for three probe timeouts.
const closedLinger = 30 * time.Second

// sending finds the connection that a packet belongs to by the connection ID that it is sent to.
type sending struct {
	sync.Mutex
	connections map[string]*sender
	datagram    []byte // built here; reused, under the lock
}

// sender is the sending side of one QUIC connection.
type sender struct {
	conn      *Conn
	encoder   coding.Encoder
	announced []observer.SentPacket // and not yet written
	closing   bool                  // a packet that closes the connection was written

	prefix         [header.Prefix]byte // of the open generation's last source packet
	id, generation uint8               // of the next source packet
	symbol         []byte              // reused
}

func (c *Conn) newSender() *sender { return &sender{conn: c, encoder: c.settings.Code.NewEncoder()} }

// PacketSent implements observer.Connection.
func (s *sender) PacketSent(p observer.SentPacket) {
	s.conn.sending.Lock()
	defer s.conn.sending.Unlock()
	s.announced = append(s.announced, p)
	s.conn.sending.connections[p.ConnectionID] = s
}

// Closed implements observer.Connection.
func (s *sender) Closed() {
	time.AfterFunc(closedLinger, func() {
		s.conn.sending.Lock()
		defer s.conn.sending.Unlock()
		for id, connection := range s.conn.sending.connections {
			if connection == s {
				delete(s.conn.sending.connections, id)
			}
		}
	})
}

func (c *Conn) writeShort(packet []byte, to net.Addr) error {
	c.sending.Lock()
	defer c.sending.Unlock()
	if c.settings.Code == nil {
		return c.writeUnprotected(packet, to)
	}
	id := packet[1:header.Prefix]
	s := c.sending.connections[string(id)]
	if s == nil {
		return c.outOfStep("no packet to connection ID %x was announced", id)
	}
	announced, err := s.announcement(packet)
	if err != nil {
		return err
	}
	if !announced.AckEliciting {
		return c.writeUnprotected(packet, to)
	}
	return s.writeProtected(packet, to, announced.EndsStream)
}

// announcement takes what was announced of a packet that is being written.
func (s *sender) announcement(packet []byte) (observer.SentPacket, error) {
	if len(s.announced) == 0 {
		if s.closing {
			return observer.SentPacket{}, nil
		}
		return observer.SentPacket{}, s.conn.outOfStep("a packet of %d bytes was not announced", len(packet))
	}
	next := s.announced[0]
	s.announced = s.announced[1:]
	if id := packet[1:header.Prefix]; next.Length != len(packet) || next.ConnectionID != string(id) {
		return next, s.conn.outOfStep("announced %d bytes to connection ID %x, written %d bytes to %x",
			next.Length, next.ConnectionID, len(packet), id)
	}
	s.closing = s.closing || next.Closes
	return next, nil
}

func (c *Conn) outOfStep(format string, values ...any) error {
	err := fmt.Errorf("%w: %s", ErrOutOfStep, fmt.Sprintf(format, values...))
	c.settings.Fail(err)
	return err
}

func (c *Conn) writeUnprotected(packet []byte, to net.Addr) error {
	return c.write(packet[:header.Prefix], header.Header{Kind: header.Unprotected}, packet[header.Prefix:], to)
}

// writeProtected sends a source packet, and the coded packet behind the last one of its generation.
func (s *sender) writeProtected(packet []byte, to net.Addr, endsStream bool) error {
	prefix := packet[:header.Prefix]
	if s.encoder.Size() > 0 && string(prefix[1:]) != string(s.prefix[1:]) {
		// A recovered packet gets the connection ID of the coded one, so a generation has but one of them (§V-A2).
		if err := s.writeRepair(to); err != nil {
			return err
		}
	}
	copy(s.prefix[:], prefix)
	h := header.Header{Kind: header.Source, ID: s.id, Generation: s.generation, Size: header.Overlap}
	if err := s.conn.write(prefix, h, packet[header.Prefix:], to); err != nil {
		return err
	}
	s.conn.SourceSent.Add(1)
	s.id++
	s.symbol = appendSymbol(s.symbol[:0], packet)
	if complete := s.encoder.Add(s.symbol); complete || endsStream && s.conn.settings.FlushAtStreamEnd {
		return s.writeRepair(to)
	}
	return nil
}

// writeRepair completes the open generation. As in the original, its coded packet goes out
// at once: not paced, and not counted by the congestion controller.
func (s *sender) writeRepair(to net.Addr) error {
	h := header.Header{
		Kind: s.conn.settings.Code.Kind(), ID: s.id - 1, Generation: s.generation, Size: uint8(s.encoder.Size()),
	}
	prefix := s.prefix
	prefix[0] &= 0xe0 // what header protection leaves readable
	s.symbol = s.encoder.AppendRepair(s.symbol[:0])
	s.generation++
	if err := s.conn.write(prefix[:], h, s.symbol, to); err != nil {
		return err
	}
	s.conn.RepairSent.Add(1)
	return nil
}

func (c *Conn) write(prefix []byte, h header.Header, rest []byte, to net.Addr) error {
	c.sending.datagram = append(h.Append(append(c.sending.datagram[:0], prefix...)), rest...)
	_, err := c.packetConn.WriteTo(c.sending.datagram, to)
	return err
}

// appendSymbol appends the source symbol of a packet: what follows the connection ID and, since header
// protection covers a part of it, the first byte; before both the number of these bytes (§V-A2).
func appendSymbol(b, packet []byte) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(len(packet)-header.ConnectionIDLength))
	b = append(b, packet[0])
	return append(b, packet[header.Prefix:]...)
}

// packetOfSymbol is the reverse of appendSymbol: the packet, sent to the connection ID in prefix. It
// reports false when the symbol isn't one.
func packetOfSymbol(symbol, prefix []byte) ([]byte, bool) {
	if len(symbol) < 3 {
		return nil, false
	}
	length := int(binary.BigEndian.Uint16(symbol))
	if length < 2 || length > len(symbol)-2 {
		return nil, false
	}
	packet := make([]byte, 0, length+header.ConnectionIDLength)
	packet = append(packet, symbol[2])
	packet = append(packet, prefix[1:header.Prefix]...)
	return append(packet, symbol[3:2+length]...), true
}
