package rquic

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/fecbench/fecbench/quic-impls/rquic/internal/coding"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/header"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/observer"
)

// library is a QUIC library that knows which packets are authentic, and has a verdict on each after a few more came.
type library struct {
	conn      *Conn
	authentic map[string]bool
	lag       int
	unjudged  [][]byte
	read      map[string]bool
}

func (l *library) readAll() {
	for {
		packets := allReady(l.conn)
		l.unjudged = append(l.unjudged, packets...)
		if len(l.unjudged) <= l.lag {
			return
		}
		for _, packet := range l.unjudged[:len(l.unjudged)-l.lag] {
			l.read[string(packet)] = true
			l.conn.judge(observer.Judgement{
				ConnectionID: header.ConnectionID(packet[1:header.Prefix]), Length: len(packet), Authentic: l.authentic[string(packet)],
			})
		}
		l.unjudged = slices.Clone(l.unjudged[len(l.unjudged)-l.lag:])
	}
}

// forgeries that one sends who sees the packets, before a genuine datagram.
var forgeries = map[string]func(random *rand.Rand, n int, datagram []byte) []byte{
	"none": func(*rand.Rand, int, []byte) []byte { return nil },
	// Once in 60 datagrams, a packet far ahead.
	"jumps": func(_ *rand.Rand, n int, datagram []byte) []byte {
		if n%60 != 0 {
			return nil
		}
		forged := slices.Clone(datagram[:40])
		forged[header.Prefix], forged[header.Prefix+3] = byte(header.Source), 1
		forged[header.Prefix+1] += 200
		forged[header.Prefix+2] += 100
		return forged
	},
	// Before all others, a packet far ahead.
	"first": func(_ *rand.Rand, n int, datagram []byte) []byte {
		if n != 30 {
			return nil
		}
		forged := slices.Clone(datagram[:40])
		forged[header.Prefix+1] += 100
		forged[header.Prefix+2] += 50
		return forged
	},
	// Once in 60 datagrams, a packet as far ahead as is believed.
	"steps": func(_ *rand.Rand, n int, datagram []byte) []byte {
		if n%60 != 0 {
			return nil
		}
		forged := slices.Clone(datagram[:40])
		forged[header.Prefix], forged[header.Prefix+3] = byte(header.Source), 1
		forged[header.Prefix+1] += maxAhead - 2
		forged[header.Prefix+2] += 3
		return forged
	},
	// Once in 60 datagrams, another packet with the id and the generation of a genuine one.
	"twins": func(_ *rand.Rand, n int, datagram []byte) []byte {
		if n%60 != 0 || datagram[header.Prefix] != byte(header.Source) {
			return nil
		}
		return slices.Clone(datagram[:40])
	},
	// Before each coded packet, one with other content.
	"coded": func(random *rand.Rand, _ int, datagram []byte) []byte {
		if datagram[header.Prefix] == byte(header.Source) {
			return nil
		}
		forged := slices.Clone(datagram)
		for i := len(forged) / 2; i < len(forged); i++ {
			forged[i] = byte(random.IntN(256))
		}
		return forged
	},
	// Before each coded packet, one of which nothing is rebuilt that has the form of a packet.
	"coded, without form": func(random *rand.Rand, _ int, datagram []byte) []byte {
		if datagram[header.Prefix] == byte(header.Source) {
			return nil
		}
		forged := slices.Clone(datagram)
		for i := header.Prefix + 4; i < len(forged); i++ {
			forged[i] = byte(random.IntN(256))
		}
		return forged
	},
}

// Every 19th of 900 packets is lost. Forgeries cost at most a generation each, and packets that are recovered with their
// help are not counted.
func TestForgedDatagramsCostLittleRecoveryAndNeverCount(t *testing.T) {
	for _, code := range []coding.Code{coding.XOR{}, coding.RLC{Coded: 1}} {
		for name, forge := range forgeries {
			for _, lag := range []int{0, 5} {
				sent, random := &recorder{keep: true}, rand.New(rand.NewPCG(1, 4))
				send := sendingOne(t, code, sent)
				for range 900 {
					send()
				}
				_, receiving, _ := pair(t, 9, nil)
				receiving.settings.Code, receiving.judged = code, true
				quic := library{conn: receiving, authentic: map[string]bool{}, lag: lag, read: map[string]bool{}}
				var arriving [][]byte
				lost := map[string]bool{}
				for i, datagram := range sent.written {
					prefix, h, rest, err := header.Parse(datagram)
					if err != nil {
						t.Fatal(err)
					}
					if h.Kind == header.Source {
						packet := string(slices.Concat(prefix, rest))
						quic.authentic[packet] = true
						lost[packet] = i%19 == 11
					}
					if forged := forge(random, i+30, datagram); forged != nil {
						arriving = append(arriving, forged)
					}
					if i%19 != 11 {
						arriving = append(arriving, slices.Clone(datagram))
					}
				}
				now := time.Now()
				for _, datagram := range arriving {
					now = now.Add(time.Millisecond)
					receiving.receive(now, datagram, peerAddress)
					receiving.expire(now)
					quic.readAll()
				}
				quic.lag = 0
				receiving.expire(now.Add(bto))
				quic.readAll()
				var recovered int64
				for packet, wasLost := range lost {
					if wasLost && quic.read[packet] {
						recovered++
					}
				}
				if counted := receiving.Recovered.Load() - receiving.RecoveredSpurious.Load(); counted != recovered {
					t.Errorf("%T, %s, lag %d: counted %d, %d were recovered", code, name, lag, counted, recovered)
				}
				if least := int64(35); recovered < least || name == "none" && recovered < 45 {
					t.Errorf("%T, %s, lag %d: %d losses recovered", code, name, lag, recovered)
				}
				t.Logf("%T, %s, lag %d: %d", code, name, lag, recovered)
			}
		}
	}
}

// A connection's judgements come in the order in which QUIC read, so a length that differs says that one was left out.
func TestAJudgementIsOfTheNextPacketThatHasItsLength(t *testing.T) {
	_, receiving, _ := pair(t, 9, nil)
	receiving.Observe(&observer.Observer{})
	id := header.ConnectionID{1, 2, 3, 4}
	datagrams := map[int][]byte{}
	for length := 10; length < 16; length++ {
		datagrams[length] = slices.Concat([]byte{0x41}, id[:], make([]byte, length-header.Prefix))
		datagrams[length][header.Prefix] = byte(header.Unprotected)
	}
	judge := func(length int) (known bool) {
		_, known = receiving.judge(observer.Judgement{ConnectionID: id, Length: length, Authentic: true})
		return known
	}
	read := func(lengths ...int) {
		for _, length := range lengths {
			receiving.receive(time.Now(), slices.Clone(datagrams[length+1]), peerAddress) // the label isn't QUIC's
		}
	}
	if judge(10) {
		t.Error("a packet was known that was never read")
	}
	read(10, 11, 12)
	if !judge(10) || judge(12) || judge(12) {
		t.Error("11 was left out, and 12 was judged twice: neither was seen")
	}
	read(13, 14)
	if _, known := receiving.judge(observer.Judgement{ConnectionID: id, Unread: true}); !known || !judge(13) {
		t.Error("14, for which QUIC had no room, was waited for")
	}
	read(10)
	if !judge(10) {
		t.Error("what is known was not known any more")
	}
}

func TestWhatHasNoShortHeaderIsNotAwaited(t *testing.T) {
	_, receiving, _ := pair(t, 9, nil)
	receiving.Observe(&observer.Observer{})
	id := header.ConnectionID{1, 2, 3, 4}
	for _, first := range []byte{0x01, 0x81, 0xc1, 0x41} { // the last is the first byte of a short header
		for _, origin := range []origin{came, built} {
			receiving.await(time.Now(), slices.Concat([]byte{first}, id[:], []byte("packet")), handed{origin: origin})
		}
	}
	for range 2 {
		if _, known := receiving.judge(observer.Judgement{ConnectionID: id, Length: 11, Authentic: true}); !known {
			t.Error("a short-header packet is not awaited")
		}
	}
	if _, known := receiving.judge(observer.Judgement{ConnectionID: id, Length: 11, Authentic: true}); known {
		t.Error("another packet is awaited")
	}
	if malformed := receiving.Malformed.Load(); malformed != 3 {
		t.Errorf("%d malformed, right are the 3 that were rebuilt", malformed)
	}
}

func TestAJudgementOfWhatWasRebuiltReturnsItsRecovery(t *testing.T) {
	sent := &recorder{keep: true}
	send := sendingOne(t, coding.XOR{}, sent)
	for range 30 {
		send()
	}
	_, receiving, _ := pair(t, 9, nil)
	receiving.Observe(&observer.Observer{})
	lost := numberOf(t, sent.written[4])
	recoveries := 0
	for i, datagram := range sent.written {
		if i == 4 {
			continue
		}
		receiving.receive(time.Now(), slices.Clone(datagram), peerAddress)
		for _, packet := range allReady(receiving) {
			rebuilt, known := receiving.judge(observer.Judgement{
				ConnectionID: header.ConnectionID(packet[1:header.Prefix]), Length: len(packet), Authentic: true,
			})
			if is := binary.BigEndian.Uint64(packet[header.Prefix:]) == lost; !known || is != (rebuilt != nil) {
				t.Errorf("the packet that was lost: %v; known: %v, recovery: %v", is, known, rebuilt)
			}
			if rebuilt != nil {
				recoveries++
			}
		}
	}
	if recoveries != 1 {
		t.Errorf("%d recoveries", recoveries)
	}
}

// FuzzJudging gives a receiver whatever datagrams, of 64 bytes at most, and judges what it hands over by a byte of each. Its
// memory stays bounded, and only authentic packets count.
func FuzzJudging(f *testing.F) {
	f.Add([]byte("Aaaaa\x01\x00\x00\x01one"), uint8(0))
	f.Add([]byte("Aaaaa\x01\x05\x07\x01one\xffAaaaa\x01\x07\x07\x01six\xff@aaaa\x02\x07\x07\x03\x00\x04Bone"), uint8(1))
	f.Add([]byte("Aaaaa\x01\x05\x07\x01one\xffAaaaa\x01\xd7\x67\x01six\xff@aaaa\x02\x06\x07\x02\x00\x04Bone"), uint8(2))
	f.Fuzz(func(t *testing.T, input []byte, seed uint8) {
		_, receiving, _ := pair(t, 9, nil)
		receiving.judged = true
		now, authentic := time.Now(), int64(0)
		for datagram := range bytes.SplitSeq(input, []byte{0xff}) {
			now = now.Add(time.Millisecond)
			datagram = slices.Clone(datagram[:min(len(datagram), 64)])
			if passed := receiving.receive(now, datagram, peerAddress); passed != nil && !header.IsLong(passed) {
				receiving.judge(observer.Judgement{ConnectionID: header.ConnectionID(passed[1:header.Prefix]), Length: len(passed)})
			}
			receiving.expire(now)
			for _, packet := range allReady(receiving) {
				j := observer.Judgement{ConnectionID: header.ConnectionID(packet[1:header.Prefix]), Length: len(packet)}
				if j.Authentic = (packet[len(packet)-1]+seed)%4 > 0; j.Authentic {
					authentic++
				}
				receiving.judge(j)
			}
			for _, r := range receiving.receivers {
				if len(r.kept) > maxKept || r.hold.Held() > 127 {
					t.Fatalf("%d coded packets are kept, and %d packets held", len(r.kept), r.hold.Held())
				}
			}
		}
		if counted := receiving.Recovered.Load(); counted > authentic {
			t.Fatalf("%d were recovered, %d were authentic", counted, authentic)
		}
	})
}
