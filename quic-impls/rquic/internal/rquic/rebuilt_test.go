package rquic

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/fecbench/fecbench/quic-impls/rquic/internal/coding"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/header"
)

// numberOf is the number of a packet of sendingOne, as QUIC reads it, or 0 for a coded datagram.
func numberOf(t *testing.T, datagram []byte) uint64 {
	t.Helper()
	_, h, rest, err := header.Parse(slices.Clone(datagram))
	if err != nil {
		t.Fatal(err)
	}
	if h.Kind != header.Source {
		return 0
	}
	return binary.BigEndian.Uint64(rest)
}

// someLost returns datagrams in the order of their arrival: of 50 each, one is lost, one comes late by as many
// datagrams as told, and one comes twice.
func someLost(datagrams [][]byte, lateness int, random *rand.Rand) (arriving [][]byte) {
	late := map[int][][]byte{} // by the place at which they come
	for i, datagram := range datagrams {
		switch random.IntN(50) {
		case 0:
		case 1:
			late[i+lateness] = append(late[i+lateness], datagram)
		case 2:
			arriving = append(arriving, datagram, datagram)
		default:
			arriving = append(arriving, datagram)
		}
		arriving = append(arriving, late[i]...)
	}
	return arriving
}

// The law: rebuilt packets that never came are recovered. Rebuilt packets that came after all, however long after the
// decoder forgot them, up to the 255 packets that the wire tells apart, are spurious.
func TestAPacketCountsAsRecoveredOnlyIfItNeverCame(t *testing.T) {
	for name, code := range map[string]coding.Code{"XOR": coding.XOR{}, "RLC": coding.RLC{Coded: 2}} {
		for _, lateness := range []int{3, 12, 130, 200, 250} { // in datagrams; of 10 or 11, 9 are source packets
			sent := &recorder{keep: true}
			send := sendingOne(t, code, sent)
			for range 20_000 {
				send()
			}
			_, receiving, _ := pair(t, 9, nil)
			receiving.settings.Code, receiving.settings.HoldTimeout = code, 0
			came, rebuilt := map[uint64]bool{}, map[uint64]bool{}
			for _, datagram := range someLost(sent.written, lateness, rand.New(rand.NewPCG(uint64(lateness), 3))) {
				itself := numberOf(t, datagram)
				receiving.receive(time.Now(), datagram, peerAddress)
				came[itself] = true
				for _, packet := range allReady(receiving) {
					if number := binary.BigEndian.Uint64(packet[header.Prefix:]); !came[number] {
						rebuilt[number] = true
					}
				}
			}
			var lost, spurious int64
			for number := range rebuilt {
				if came[number] {
					spurious++
				} else {
					lost++
				}
			}
			recovered := receiving.Recovered.Load() - receiving.RecoveredSpurious.Load()
			if recovered != lost || receiving.RecoveredSpurious.Load() != spurious || lost == 0 || spurious == 0 {
				t.Errorf("%s, late by %d: %d recovered and %d spurious, right is %d and %d",
					name, lateness, recovered, receiving.RecoveredSpurious.Load(), lost, spurious)
			}
		}
	}
}

func TestARebuiltPacketIsForgottenWhenTheWireCannotTellItFromANewerOne(t *testing.T) {
	var r rebuilt
	for _, id := range []int64{1000, 1001, 1000 + rebuiltWindow} {
		r.add(id, nil)
		r.confirm(id)
	}
	if r.take(1000) || !r.take(1001) || r.take(1001) || !r.take(1000+rebuiltWindow) || r.take(0) {
		t.Error("it remembers something else")
	}
}

func TestARebuiltPacketIsSpuriousWhenItIsConfirmedAndCameInEitherOrder(t *testing.T) {
	var r rebuilt
	for id := range int64(3) {
		r.add(id, nil)
	}
	if r.take(0) || !r.confirm(0) {
		t.Error("what came first and was confirmed then is not spurious")
	}
	if r.confirm(1) || !r.take(1) {
		t.Error("what was confirmed first and came then is not spurious")
	}
	r.forget(2)
	if r.take(2) || r.confirm(2) {
		t.Error("what was forgotten is spurious")
	}
}
