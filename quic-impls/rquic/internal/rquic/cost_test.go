package rquic

import (
	"encoding/binary"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/fecbench/fecbench/quic-impls/rquic/internal/coding"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/header"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/observer"
)

// recorder is a packetConn that keeps what is written.
type recorder struct {
	packetConn
	keep    bool
	written [][]byte
}

func (r *recorder) WriteTo(b []byte, _ net.Addr) (int, error) {
	if r.keep {
		r.written = append(r.written, slices.Clone(b))
	}
	return len(b), nil
}

// replayer is a packetConn from which the same datagrams come again and again, numbered anew.
type replayer struct {
	packetConn
	datagrams       [][]byte
	next            int
	ids, generation uint8 // of a round of datagrams
	round           uint8
}

func (r *replayer) SetReadDeadline(time.Time) error { return nil }

var peerAddress = &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 4433}

func (r *replayer) ReadFrom(b []byte) (int, net.Addr, error) {
	n := copy(b, r.datagrams[r.next])
	b[header.Prefix+1] += r.round * r.ids
	b[header.Prefix+2] += r.round * r.generation
	if r.next++; r.next == len(r.datagrams) {
		r.next = 0
		r.round++
	}
	return n, peerAddress, nil
}

var costCodes = map[string]coding.Code{"none": nil, "xor": coding.XOR{}, "rlc": coding.RLC{Coded: 1}}

// sendingOne returns a function that announces and writes one packet of 1252 bytes.
func sendingOne(tb testing.TB, code coding.Code, inner packetConn) func() {
	s := settings(9)
	s.Code = code
	conn := New(inner, s)
	o := &observer.Observer{}
	conn.Observe(o)
	packet := make([]byte, 1252)
	packet[0] = 0x41
	announced := observer.SentPacket{
		ConnectionID: header.ConnectionID(packet[1:header.Prefix]), Length: len(packet), AckEliciting: true,
	}
	var connection observer.Connection
	if code != nil {
		connection = o.Open(0)
	}
	n := uint64(0)
	return func() {
		n++
		binary.BigEndian.PutUint64(packet[header.Prefix:], n)
		if code != nil {
			connection.PacketSent(announced)
		}
		if _, err := conn.WriteTo(packet, peerAddress); err != nil {
			tb.Fatal(err)
		}
	}
}

// receivingOne returns a function that reads one packet. So many of every 18 source packets are lost.
func receivingOne(tb testing.TB, code coding.Code, lost int) (func(), *Conn) {
	sent := &recorder{keep: true}
	send := sendingOne(tb, code, sent)
	for range 18 {
		send()
	}
	from := &replayer{datagrams: sent.written, ids: 18, generation: 2}
	for i := range lost {
		from.datagrams = slices.Delete(from.datagrams, 3+9*i, 4+9*i)
	}
	s := settings(9)
	s.Code = code
	conn := New(from, s)
	buffer := make([]byte, 1452)
	return func() {
		if _, _, err := conn.ReadFrom(buffer); err != nil {
			tb.Fatal(err)
		}
	}, conn
}

// allocations in a hundred calls, rounded down.
func allocations(call func()) float64 {
	return testing.AllocsPerRun(100, func() {
		for range 100 {
			call()
		}
	})
}

func TestNoPacketCostsAnAllocation(t *testing.T) {
	for name, code := range costCodes {
		t.Run("sending "+name, func(t *testing.T) {
			send := sendingOne(t, code, &recorder{})
			for range 1000 {
				send()
			}
			if n := allocations(send); n > 0 {
				t.Errorf("%v for 100 packets", n)
			}
		})
		for lost := range 3 {
			if code == nil && lost > 0 {
				continue
			}
			t.Run(fmt.Sprintf("receiving %s with %d of 18 lost", name, lost), func(t *testing.T) {
				receive, conn := receivingOne(t, code, lost)
				for range 10_000 {
					receive()
				}
				before := conn.Recovered.Load()
				if n := allocations(receive); n > 0 {
					t.Errorf("%v for 100 packets", n)
				}
				if recovered := conn.Recovered.Load() - before; recovered < int64(lost)*400 {
					t.Errorf("only %d were recovered", recovered)
				}
			})
		}
	}
}

// BenchmarkSend is per packet of 1252 bytes, without the system's part.
func BenchmarkSend(b *testing.B) {
	for name, code := range costCodes {
		b.Run(name, func(b *testing.B) {
			send := sendingOne(b, code, &recorder{})
			b.ReportAllocs()
			for b.Loop() {
				send()
			}
		})
	}
}

// BenchmarkReceive is per packet that the QUIC library reads, without the system's part.
func BenchmarkReceive(b *testing.B) {
	for name, code := range costCodes {
		for lost := range 2 {
			if code == nil && lost > 0 {
				continue
			}
			b.Run(fmt.Sprintf("%s/lost=%d_of_18", name, lost), func(b *testing.B) {
				receive, _ := receivingOne(b, code, lost)
				b.ReportAllocs()
				for b.Loop() {
					receive()
				}
			})
		}
	}
}
