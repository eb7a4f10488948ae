package rquic

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fecbench/fecbench/quic-impls/rquic/internal/coding"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/header"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/lane"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/lossylink"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/observer"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/socket"
)

const bto = 25 * time.Millisecond

func settings(k int) Settings {
	return Settings{
		Code: coding.XOR{}, Overlap: 1, GenerationMax: header.MaxGenerationSize, Rate: float64(k), PacketSize: 1252,
		FlushAtStreamEnd: true, HoldTimeout: bto, Fail: func(error) {},
	}
}

// pair returns two wrapped ends of a fast link without delay. It carries datagrams in a bubble, until the test ends.
func pair(t *testing.T, k int, loses func(n uint64, datagram []byte) bool) (sending, receiving *Conn, from *lossylink.End) {
	t.Helper()
	fast := lossylink.Rate(1e5, 0, 1<<30, lossylink.Those(loses))
	link, err := lossylink.New(fast, fast, lane.New(), lane.New())
	if err != nil {
		t.Fatal(err)
	}
	a, b := link.Connect(&net.UDPAddr{IP: net.IPv4(10, 0, 1, 2).To4(), Port: 1}, &net.UDPAddr{IP: net.IPv4(10, 0, 2, 2).To4(), Port: 2}, 0)
	if time.Now().Year() == 2000 { // in a bubble
		go link.Run(t.Context())
	}
	return New(&socket.Socket{PacketConn: a}, settings(k)), New(&socket.Socket{PacketConn: b}, settings(k)), a
}

// announcer writes packets as the QUIC library does: announced first.
type announcer struct {
	t          *testing.T
	conn       *Conn
	connection observer.Connection
	id         string
}

func newAnnouncer(t *testing.T, conn *Conn) *announcer {
	o := &observer.Observer{}
	conn.Observe(o)
	return &announcer{t, conn, o.Open(0), "\x01\x02\x03\x04"}
}

func (a *announcer) write(rest []byte, ackEliciting, endsStream bool) (packet []byte) {
	a.t.Helper()
	packet = slices.Concat([]byte{0x41}, []byte(a.id), rest)
	a.connection.PacketSent(observer.SentPacket{
		ConnectionID: header.ConnectionID([]byte(a.id)), Length: len(packet), AckEliciting: ackEliciting, EndsStream: endsStream,
	})
	if n, err := a.conn.WriteTo(packet, nil); n != len(packet) || err != nil {
		a.t.Fatalf("wrote %d of %d bytes: %v", n, len(packet), err)
	}
	return packet
}

// readAll reads what arrives until nothing has come for longer than anything is held.
func readAll(t *testing.T, c *Conn) (packets [][]byte) {
	t.Helper()
	for {
		buffer := make([]byte, 1500)
		if err := c.SetReadDeadline(time.Now().Add(2 * bto)); err != nil {
			t.Fatal(err)
		}
		n, _, err := c.ReadFrom(buffer)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return packets
		}
		if err != nil {
			t.Fatal(err)
		}
		packets = append(packets, buffer[:n])
	}
}

func random(source *rand.Rand, length int) []byte {
	b := make([]byte, length)
	for i := range b {
		b[i] = byte(source.Uint32())
	}
	return b
}

// unheardOf is a code that the wrapper has never met.
type unheardOf struct{ coding.RLC }

func (unheardOf) Kind() header.Kind { return 200 }

// Decoding the packets that are left by an erasure in each generation gives those that were sent, in order, whatever
// the code.
func TestPacketsOfAnyLengthSurviveOneLossInEachGeneration(t *testing.T) {
	for name, code := range map[string]coding.Code{"XOR": coding.XOR{}, "RLC": coding.RLC{Coded: 1}, "new": unheardOf{coding.RLC{Coded: 1}}} {
		for _, k := range []int{1, 2, 9, 63} {
			source := rand.New(rand.NewPCG(uint64(k), 0))
			lost := func(n uint64, _ []byte) bool { return n > 0 && n%uint64(k+1) == (n/uint64(k+1))%uint64(k+1) }
			synctest.Test(t, func(t *testing.T) {
				sending, receiving, _ := pair(t, k, lost)
				sending.settings.Code, receiving.settings.Code = code, code
				writer := newAnnouncer(t, sending)
				var sent [][]byte
				for range 300 * k {
					sent = append(sent, writer.write(random(source, 1+source.IntN(1247)), true, false))
				}
				if got := readAll(t, receiving); !slices.EqualFunc(got, sent, bytes.Equal) {
					t.Errorf("%s, k = %d: %d packets arrived, %d were sent", name, k, len(got), len(sent))
				}
				if receiving.Recovered.Load() == 0 || receiving.RecoveredOutOfOrder.Load() != 0 {
					t.Errorf("%s, k = %d: %d packets recovered, %d late",
						name, k, receiving.Recovered.Load(), receiving.RecoveredOutOfOrder.Load())
				}
			})
		}
	}
}

func TestLongHeadersAndUnprotectedPacketsPassUnchanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sending, receiving, _ := pair(t, 9, nil)
		long := []byte{0xc0, 0, 0, 0, 1, 9, 9, 9}
		if _, err := sending.WriteTo(long, nil); err != nil {
			t.Fatal(err)
		}
		short := newAnnouncer(t, sending).write([]byte("ack"), false, false)
		if got := readAll(t, receiving); !slices.EqualFunc(got, [][]byte{long, short}, bytes.Equal) {
			t.Errorf("arrived %x", got)
		}
		if sending.SourceSent.Load()+sending.RepairSent.Load() != 0 {
			t.Error("something was protected")
		}
	})
}

func TestAnUnprotectedPacketOvertakesHeldOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sending, receiving, _ := pair(t, 9, func(n uint64, _ []byte) bool { return n == 1 })
		writer := newAnnouncer(t, sending)
		first := writer.write([]byte("first"), true, false)
		writer.write([]byte("lost"), true, false)
		held := writer.write([]byte("held"), true, false)
		unprotected := writer.write([]byte("ack"), false, false)
		if got := readAll(t, receiving); !slices.EqualFunc(got, [][]byte{first, unprotected, held}, bytes.Equal) {
			t.Errorf("arrived %q", got)
		}
	})
}

func TestAChangeOfTheConnectionIDCompletesTheGeneration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sending, receiving, _ := pair(t, 9, func(n uint64, _ []byte) bool { return n == 1 })
		writer := newAnnouncer(t, sending)
		var sent [][]byte
		for _, id := range []string{"aaaa", "aaaa", "bbbb"} {
			writer.id = id
			sent = append(sent, writer.write([]byte("content"), true, false))
		}
		if got := readAll(t, receiving); !slices.EqualFunc(got, sent, bytes.Equal) {
			t.Errorf("arrived %q", got)
		}
		if sending.RepairSent.Load() != 1 || receiving.Recovered.Load() != 1 {
			t.Errorf("%d coded packets sent, %d packets recovered", sending.RepairSent.Load(), receiving.Recovered.Load())
		}
	})
}

func TestAChangeOfTheConnectionIDCompletesAllOpenGenerationsAndBeginsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sending, _, _ := pair(t, 4, nil)
		sending.settings.Overlap = 2
		writer := newAnnouncer(t, sending)
		coded := func(id string, packets int) int64 {
			writer.id = id
			before := sending.RepairSent.Load()
			for range packets {
				writer.write([]byte("content"), true, false)
			}
			return sending.RepairSent.Load() - before
		}
		for i, right := range []int64{0, 2, 1, 1} { // both generations end; then one after every 4 packets
			if got := coded([]string{"aaaa", "bbbb", "bbbb", "bbbb"}[i], []int{1, 1, 3, 4}[i]); got != right {
				t.Errorf("step %d: %d coded packets, right is %d", i, got, right)
			}
		}
	})
}

func TestAPacketOfAnotherCodeIsRefused(t *testing.T) {
	_, receiving, _ := pair(t, 9, nil)
	receiving.receive(time.Now(), []byte("Aaaaa\x01\x00\x00\x01one"), nil)
	for _, kind := range []header.Kind{header.CodedRLC, 4, 255} {
		before := receiving.Malformed.Load()
		receiving.receive(time.Now(), []byte{'A', 'a', 'a', 'a', 'a', byte(kind), 1, 0, 2, 1, 1, 0, 4, 'A', 'x', 'y'}, nil)
		if receiving.Malformed.Load() != before+1 || receiving.RepairReceived.Load() != 0 {
			t.Errorf("kind %d was accepted", kind)
		}
	}
}

// The contract's counters have one for each: a coded packet of no use, for whatever reason, is received all the same.
func TestACodedPacketThatIsIgnoredIsReceivedAndRebuildsNothing(t *testing.T) {
	coded := func(id, generation byte) []byte {
		return []byte{'A', 'a', 'a', 'a', 'a', byte(header.CodedXOR), id, generation, 2, 0, 4, 'A', 'x', 'y', 'z'}
	}
	source := func(id, generation byte) []byte {
		return []byte{'A', 'a', 'a', 'a', 'a', byte(header.Source), id, generation, 1, 'o', 'n', 'e'}
	}
	_, receiving, _ := pair(t, 2, nil)
	for i, datagram := range [][]byte{coded(1, 0), source(0, 0), source(100, 50), source(200, 100), coded(1, 0)} {
		receiving.receive(time.Now(), datagram, receiving.LocalAddr())
		if right := int64(1 + i/4); receiving.RepairReceived.Load() != right || receiving.Recovered.Load() != 0 {
			t.Errorf("datagram %d: %d coded packets received, right is %d; %d rebuilt", i, receiving.RepairReceived.Load(), right, receiving.Recovered.Load())
		}
	}
	if malformed := receiving.Malformed.Load(); malformed != 0 {
		t.Errorf("%d malformed", malformed)
	}
}

func TestTwoConnectionsOfOneSocketAreCodedApart(t *testing.T) {
	source := rand.New(rand.NewPCG(1, 2))
	for lost := range uint64(12) {
		synctest.Test(t, func(t *testing.T) {
			sending, receiving, _ := pair(t, 2, func(n uint64, _ []byte) bool { return n == lost })
			writers := []*announcer{newAnnouncer(t, sending), newAnnouncer(t, sending)}
			writers[1].id = "bbbb"
			var sent [][]byte
			for range 4 {
				for _, writer := range writers {
					sent = append(sent, writer.write(random(source, 100), true, false))
				}
			}
			got := readAll(t, receiving)
			slices.SortFunc(sent, bytes.Compare)
			slices.SortFunc(got, bytes.Compare)
			if !slices.EqualFunc(got, sent, bytes.Equal) {
				t.Errorf("losing datagram %d: %d of %d packets arrived", lost, len(got), len(sent))
			}
		})
	}
}

// allReady takes all that the QUIC library would read.
func allReady(c *Conn) (packets [][]byte) {
	for {
		buffer := make([]byte, maxDatagram)
		n, _, ok := c.next(buffer)
		if !ok {
			return packets
		}
		packets = append(packets, buffer[:n])
	}
}

// Lies about ids, generations, overlaps, sizes and coefficients, told on one connection between all packets of another one
// from the same address, which loses every 19th datagram.
func TestALyingPeerHarmsItsOwnConnectionAlone(t *testing.T) {
	for name, code := range map[string]coding.Code{"xor": coding.XOR{}, "rlc": coding.RLC{Coded: 1}} {
		random := rand.New(rand.NewPCG(4, 4))
		sent := &recorder{keep: true}
		send := sendingOne(t, code, sent)
		const packets = 900
		for range packets {
			send()
		}
		_, receiving, _ := pair(t, 9, nil)
		receiving.settings.Code = code
		now, honest := time.Now(), 0
		var last uint64
		for i, datagram := range sent.written {
			if i%19 != 11 {
				receiving.receive(now, datagram, peerAddress)
			}
			lie := append([]byte("Abbbb"), byte(header.Source), byte(random.IntN(256)), byte(random.IntN(256)), byte(random.IntN(80)))
			if random.IntN(2) == 0 {
				lie[header.Prefix] = byte(code.Kind())
			}
			for range random.IntN(100) {
				lie = append(lie, byte(random.IntN(256)))
			}
			receiving.receive(now, lie, peerAddress)
			for _, packet := range allReady(receiving) {
				if string(packet[1:header.Prefix]) == "bbbb" {
					continue
				}
				honest++
				number := binary.BigEndian.Uint64(packet[header.Prefix:])
				if number != last+1 || len(packet) != 1252 {
					t.Fatalf("%s: packet %d of %d bytes came after %d", name, number, len(packet), last)
				}
				last = number
			}
		}
		if honest != packets {
			t.Errorf("%s: %d of %d packets came", name, honest, packets)
		}
	}
}

func TestAReceiverThatGivesWayReleasesWhatItHolds(t *testing.T) {
	_, receiving, _ := pair(t, 9, nil)
	now := time.Now()
	for n := range maxReceivers + 1 {
		for _, id := range []byte{0, 2} { // 2 is held, since 1 is missing
			receiving.receive(now.Add(time.Duration(n)), []byte{'A', 'a', 'a', 'a', byte(n), 1, id, 0, 1, byte(n)}, nil)
		}
	}
	released := allReady(receiving)
	if right := maxReceivers + 2; len(released) != right {
		t.Fatalf("%d packets are released, right is %d", len(released), right)
	}
	if last := released[maxReceivers]; last[header.Prefix] != 0 {
		t.Errorf("released %x, not the one that was held longest", last)
	}
}

func TestAPacketOtherThanTheAnnouncedOneIsRefused(t *testing.T) {
	announced := observer.SentPacket{ConnectionID: header.ConnectionID{'a', 'a', 'a', 'a'}, Length: 10, AckEliciting: true}
	for name, packet := range map[string][]byte{
		"another length":         []byte("Aaaaa5678"),
		"never announced":        []byte("Abbbb56789"),
		"announced once, resent": nil,
	} {
		t.Run(name, func(t *testing.T) {
			sending, _, _ := pair(t, 9, nil)
			var failure error
			sending.settings.Fail = func(err error) { failure = err }
			connection := sending.newSender(0)
			connection.PacketSent(announced)
			if packet == nil {
				packet = []byte("Aaaaa56789")
				if _, err := sending.WriteTo(packet, nil); err != nil {
					t.Fatal(err)
				}
			}
			_, err := sending.WriteTo(packet, nil)
			if !errors.Is(err, ErrOutOfStep) || !errors.Is(failure, ErrOutOfStep) {
				t.Errorf("returned %v, failed with %v", err, failure)
			}
		})
	}
}

func TestThePacketThatClosesAConnectionMayBeRepeatedForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sending, receiving, _ := pair(t, 9, nil)
		connection := sending.newSender(0)
		packet := []byte("Aaaaaclose")
		connection.PacketSent(observer.SentPacket{ConnectionID: header.ConnectionID{'a', 'a', 'a', 'a'}, Length: len(packet), Closes: true})
		connection.Closed()
		for range 3 {
			if _, err := sending.WriteTo(packet, nil); err != nil {
				t.Fatal(err)
			}
		}
		if got := readAll(t, receiving); len(got) != 3 {
			t.Errorf("%d arrived", len(got))
		}
		time.Sleep(2 * closedLinger)
		time.Sleep(time.Nanosecond) // all others wait
		if len(sending.sending.connections)+len(sending.sending.peers) != 0 {
			t.Error("the closed connection is remembered for ever")
		}
	})
}

func TestADeadlineInThePastWakesAReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, receiving, _ := pair(t, 9, nil)
		woken := make(chan error)
		go func() {
			_, _, err := receiving.ReadFrom(make([]byte, 1500))
			woken <- err
		}()
		time.Sleep(time.Nanosecond) // all others wait
		if err := receiving.SetReadDeadline(time.Now()); err != nil {
			t.Fatal(err)
		}
		if err := <-woken; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("woken by %v", err)
		}
	})
}

// A flood of datagrams from everywhere costs no more memory than the bounds allow: 64 receivers with 128 symbols, as
// many equations and 127 held packets.
func TestAFloodOfHostileDatagramsDoesNotGrowMemory(t *testing.T) {
	_, receiving, _ := pair(t, 9, nil)
	source := rand.New(rand.NewPCG(1, 1))
	now := time.Now()
	for n := range 200_000 {
		datagram := random(source, 6+source.IntN(60))
		datagram[0] &= 0x7f
		datagram[header.Prefix] = byte(1 + source.IntN(2))
		if n%2 == 0 {
			copy(datagram[1:], "aaaa")
		}
		from := &net.UDPAddr{IP: net.IPv4(10, byte(n), byte(n>>8), 1), Port: 1 + n%3}
		receiving.receive(now, datagram, from)
		allReady(receiving)
	}
	if len(receiving.receivers) > maxReceivers {
		t.Errorf("%d receivers", len(receiving.receivers))
	}
	var memory runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&memory)
	if memory.HeapAlloc > 64<<20 {
		t.Errorf("%d bytes are in use", memory.HeapAlloc)
	}
	runtime.KeepAlive(receiving)
}

// FuzzReceive gives a receiver whatever datagrams: each has a byte for its sender and two for its length. All that
// is held must come out in time, and nothing may come out that is longer than what came in.
func FuzzReceive(f *testing.F) {
	frame := func(datagrams ...[]byte) (input []byte) {
		for _, datagram := range datagrams {
			input = append(input, 1)
			input = binary.BigEndian.AppendUint16(input, uint16(len(datagram)))
			input = append(input, datagram...)
		}
		return input
	}
	f.Add(frame([]byte("Aaaaa\x00ack"), []byte("Aaaaa\x01\x00\x00\x01one"), []byte("Aaaaa\x01\x02\x00\x01three")))
	f.Add(frame([]byte("Aaaaa\x01\x00\x00\x01one"), []byte("@aaaa\x02\x00\x00\x01\x00\x04Aone")))
	f.Add(frame([]byte("Aaaaa\x01\x05\x07\x01one"), []byte("@aaaa\x02\x06\x07\x02\x00\x04Bone")))
	f.Add(frame([]byte("@aaaa\x02\xff\xff\xff\xff\xff"), []byte("@aaaa\x02\x00"), []byte("@"), nil))
	f.Fuzz(func(t *testing.T, input []byte) {
		_, receiving, _ := pair(t, 9, nil)
		now := time.Unix(0, 0)
		in, longest := 0, 0
		for len(input) > 3 {
			from := &net.UDPAddr{IP: net.IPv4(10, 0, 0, input[0]), Port: 1}
			n := min(int(binary.BigEndian.Uint16(input[1:])), len(input)-3, maxDatagram)
			datagram := slices.Clone(input[3 : 3+n])
			input = input[3+n:]
			in, longest = in+1, max(longest, n)
			if passed := receiving.receive(now, datagram, from); passed != nil {
				in--
			}
			now = now.Add(time.Millisecond)
		}
		receiving.expire(now.Add(bto))
		ready := allReady(receiving)
		out := len(ready)
		if out > in || out < int(receiving.SourceReceived.Load()) {
			t.Errorf("%d datagrams came in, %d of them source packets, %d went out", in, receiving.SourceReceived.Load(), out)
		}
		for _, packet := range ready {
			if len(packet) > longest {
				t.Errorf("%d bytes went out, at most %d came in", len(packet), longest)
			}
		}
	})
}
