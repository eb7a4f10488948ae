package rquic

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fecbench/fecbench/quic-impls/rquic/internal/coderate"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/coding"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/header"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/observer"
)

// closedLinger is the time for which a closed connection is remembered: quic-go repeats its last packet to a peer that still writes
// to it, for three probe timeouts.
const closedLinger = 30 * time.Second

// sending finds the connection that a packet belongs to by the connection ID that it is sent to.
type sending struct {
	sync.Mutex
	connections map[header.ConnectionID]*sender
	peers       map[netip.AddrPort]*peer // that connections write to
}

// peer is the address to which connections write. The smoothed RTT, in ns, is the newest of any connection; 0 before.
type peer struct{ smoothedRTT atomic.Int64 }

// sender is the sending side of one QUIC connection. QUIC's goroutine announces packets and progress, while another
// one writes: neither waits for the other's system calls.
type sender struct {
	conn *Conn

	rate     *coderate.Controller // nil: constant; of QUIC's goroutine, as the next two
	number   int                  // in the series
	progress observer.Progress

	q         atomic.Uint64        // bits of the code rate
	peer      atomic.Pointer[peer] // nil before the first packet
	announced announcements

	writing     sync.Mutex // guards the rest, during system calls too
	generations *coding.Generations
	closing     bool                // a packet that closes the connection was written
	prefix      [header.Prefix]byte // of the last source packet
	id          uint8               // of the next source packet
	symbol      []byte              // reused
}

// announcements are packets that were announced and not yet written, in order.
type announcements struct {
	sync.Mutex
	queue queue[observer.SentPacket]
}

func (c *Conn) newSender(number int) *sender {
	s := &sender{conn: c, number: number}
	s.generations = coding.NewGenerations(c.settings.Code, c.settings.Overlap, c.settings.GenerationMax)
	q := c.settings.Rate
	if c.settings.Adaptive != nil {
		most := c.settings.GenerationMax / (c.settings.Overlap * max(c.settings.Code.Redundancies(), 1))
		s.rate = coderate.NewController(*c.settings.Adaptive, float64(max(most, 1)))
		q = s.rate.Q()
	}
	s.q.Store(math.Float64bits(q))
	if c.settings.Series != nil {
		c.settings.Series.Add(s.number, coderate.Sample{Q: q}.Row()...)
	}
	return s
}

// PacketSent implements observer.Connection.
func (s *sender) PacketSent(p observer.SentPacket) {
	s.announced.add(p)
	s.conn.sending.Lock()
	defer s.conn.sending.Unlock()
	s.conn.sending.connections[p.ConnectionID] = s
}

// PacketJudged implements observer.Connection.
func (s *sender) PacketJudged(j observer.Judgement) (rebuilt *observer.Recovery, known bool) {
	return s.conn.judge(j)
}

// Counted implements observer.Connection.
func (s *sender) Counted(p observer.Progress) {
	s.conn.Delivered.Add(p.Delivered - s.progress.Delivered)
	s.conn.Lost.Add(p.Lost - s.progress.Lost)
	s.progress = p
}

// Progressed implements observer.Connection.
func (s *sender) Progressed(p observer.Progress) {
	c := s.conn
	if peer := s.peer.Load(); peer != nil {
		peer.smoothedRTT.Store(int64(p.SmoothedRTT))
	}
	if s.rate == nil {
		return
	}
	sample, ended := s.rate.Update(time.Now(), coderate.State{
		Delivered: p.Delivered, Lost: p.Lost, SmoothedRTT: p.SmoothedRTT, MinRTT: p.MinRTT, WindowPackets: p.Window / c.settings.PacketSize,
	})
	s.q.Store(math.Float64bits(s.rate.Q()))
	if ended && c.settings.Series != nil {
		c.settings.Series.Add(s.number, sample.Row()...)
	}
}

// Closed implements observer.Connection.
func (s *sender) Closed() {
	time.AfterFunc(closedLinger, func() {
		s.conn.sending.Lock()
		defer s.conn.sending.Unlock()
		maps.DeleteFunc(s.conn.sending.connections, func(_ header.ConnectionID, connection *sender) bool { return connection == s })
		closed := s.peer.Load()
		for _, connection := range s.conn.sending.connections {
			if connection.peer.Load() == closed {
				return
			}
		}
		maps.DeleteFunc(s.conn.sending.peers, func(_ netip.AddrPort, known *peer) bool { return known == closed })
	})
}

func (c *Conn) writeShort(packet []byte, to net.Addr) error {
	if c.settings.Code == nil {
		return c.write(packet[:header.Prefix], header.Header{}, packet[header.Prefix:], to)
	}
	s := c.sender(header.ConnectionID(packet[1:header.Prefix]), to)
	if s == nil {
		return c.outOfStep("no packet to connection ID %x was announced", packet[1:header.Prefix])
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	announced, err := s.announcement(packet)
	if err != nil {
		return err
	}
	if !announced.AckEliciting || c.settings.DecodeOnly {
		return c.write(packet[:header.Prefix], header.Header{}, packet[header.Prefix:], to)
	}
	return s.writeProtected(packet, to, announced.EndsStream)
}

// sender finds the connection with an ID, which writes to an address; nil when it is unknown.
func (c *Conn) sender(id header.ConnectionID, to net.Addr) *sender {
	c.sending.Lock()
	defer c.sending.Unlock()
	s := c.sending.connections[id]
	if s != nil && s.peer.Load() == nil {
		address := addressOf(to)
		if c.sending.peers[address] == nil {
			c.sending.peers[address] = &peer{}
		}
		s.peer.Store(c.sending.peers[address])
	}
	return s
}

// addressOf is the address of a peer; the zero one for what isn't UDP.
func addressOf(a net.Addr) netip.AddrPort {
	udp, ok := a.(*net.UDPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	address := udp.AddrPort()
	return netip.AddrPortFrom(address.Addr().Unmap(), address.Port())
}

// announcement takes what was announced of a packet that is being written.
func (s *sender) announcement(packet []byte) (observer.SentPacket, error) {
	next, ok := s.announced.take()
	if !ok {
		if s.closing {
			return observer.SentPacket{}, nil
		}
		return observer.SentPacket{}, s.conn.outOfStep("a packet of %d bytes was not announced", len(packet))
	}
	if id := header.ConnectionID(packet[1:header.Prefix]); next.Length != len(packet) || next.ConnectionID != id {
		return next, s.conn.outOfStep("announced %d bytes to connection ID %x, written %d bytes to %x",
			next.Length, next.ConnectionID, len(packet), id)
	}
	s.closing = s.closing || next.Closes
	return next, nil
}

func (a *announcements) add(p observer.SentPacket) {
	a.Lock()
	defer a.Unlock()
	a.queue.add(p)
}

func (a *announcements) take() (observer.SentPacket, bool) {
	a.Lock()
	defer a.Unlock()
	return a.queue.take()
}

func (c *Conn) outOfStep(format string, values ...any) error {
	err := fmt.Errorf("%w: %s", ErrOutOfStep, fmt.Sprintf(format, values...))
	c.settings.Fail(err)
	return err
}

// writeProtected sends a source packet, and the coded packets of the generations that it completes.
func (s *sender) writeProtected(packet []byte, to net.Addr, endsStream bool) error {
	prefix := packet[:header.Prefix]
	if _, size := s.generations.Oldest(); size > 0 && string(prefix[1:]) != string(s.prefix[1:]) {
		// A recovered packet gets the connection ID of the coded one, so a generation has but one of them (§V-A2).
		if err := s.flush(to); err != nil {
			return err
		}
	}
	copy(s.prefix[:], prefix)
	h := header.Header{
		Kind: header.Source, ID: s.id, Generation: s.generations.Newest(), Size: uint8(s.generations.Overlap()),
	}
	if err := s.conn.write(prefix, h, packet[header.Prefix:], to); err != nil {
		return err
	}
	s.conn.SourceSent.Add(1)
	s.id++
	s.symbol = appendSymbol(s.symbol[:0], packet)
	s.generations.Add(s.symbol)
	if endsStream && s.conn.settings.FlushAtStreamEnd {
		return s.flush(to)
	}
	for s.generations.Complete(math.Float64frombits(s.q.Load())) {
		if err := s.complete(to); err != nil {
			return err
		}
	}
	return nil
}

// flush completes all open generations.
func (s *sender) flush(to net.Addr) error {
	for range s.generations.Overlap() {
		if err := s.complete(to); err != nil {
			return err
		}
	}
	s.generations.Restart()
	return nil
}

// complete ends the oldest generation, if it has any packet. As in the original, its coded packets
// go out at once: not paced, and not counted by the congestion controller.
func (s *sender) complete(to net.Addr) error {
	number, size := s.generations.Oldest()
	if size == 0 {
		return nil
	}
	c := s.conn
	h := header.Header{Kind: c.settings.Code.Kind(), ID: s.id - 1, Generation: number, Size: uint8(size)}
	prefix := s.prefix
	prefix[0] &= 0xe0 // what header protection leaves readable
	for i := range c.settings.Code.Redundancies() {
		s.symbol = s.generations.AppendRepair(s.symbol[:0], i)
		if err := c.write(prefix[:], h, s.symbol, to); err != nil {
			return err
		}
		c.countRepair(&c.RepairSent)
	}
	s.generations.Next()
	c.generationSent(int64(size))
	return nil
}

// generationSent counts a generation of a size.
func (c *Conn) generationSent(size int64) {
	c.sending.Lock()
	defer c.sending.Unlock()
	c.Generations.Add(1)
	if least := c.SmallestGeneration.Load(); least == 0 || size < least {
		c.SmallestGeneration.Store(size)
	}
	c.LargestGeneration.Store(max(size, c.LargestGeneration.Load()))
}

// buffers are buffers for datagrams that are being built; as many as are written at a time.
type buffers struct {
	sync.Mutex
	spare []*[maxDatagram]byte
}

func (b *buffers) take() *[maxDatagram]byte {
	b.Lock()
	defer b.Unlock()
	last := len(b.spare) - 1
	if last < 0 {
		return new([maxDatagram]byte)
	}
	buffer := b.spare[last]
	b.spare = b.spare[:last]
	return buffer
}

func (b *buffers) put(buffer *[maxDatagram]byte) {
	b.Lock()
	defer b.Unlock()
	b.spare = append(b.spare, buffer)
}

func (c *Conn) write(prefix []byte, h header.Header, rest []byte, to net.Addr) error {
	buffer := c.buffers.take()
	defer c.buffers.put(buffer)
	_, err := c.packetConn.WriteTo(append(h.Append(append(buffer[:0], prefix...)), rest...), to)
	return err
}

// appendSymbol appends the source symbol of a packet: the bytes after the connection ID and, since header protection
// covers a part of it, the first byte; before both the number of these bytes (§V-A2).
func appendSymbol(b, packet []byte) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(len(packet)-header.ConnectionIDLength))
	b = append(b, packet[0])
	return append(b, packet[header.Prefix:]...)
}

// appendPacket is the reverse of appendSymbol: it appends the packet, sent to the connection ID in prefix. It
// reports false when the symbol isn't one.
func appendPacket(b, symbol, prefix []byte) ([]byte, bool) {
	if len(symbol) < 3 {
		return nil, false
	}
	length := int(binary.BigEndian.Uint16(symbol))
	if length < 2 || length > len(symbol)-2 {
		return nil, false
	}
	b = append(append(b, symbol[2]), prefix[1:header.Prefix]...)
	return append(b, symbol[3:2+length]...), true
}
