package observer

import (
	"testing"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/qlog"
	"github.com/quic-go/quic-go/qlogwriter"
)

// following is a connection that is followed, and its events.
func following(t *testing.T) (*Followed, qlogwriter.Recorder, *Observer) {
	t.Helper()
	ctx := Follow(t.Context())
	o := &Observer{}
	o.Recording.Open() // another connection
	return FollowedBy(ctx), o.Trace(ctx, true, quic.ConnectionID{}).AddProducer(), o
}

func packetWith(number qlog.PacketNumber, frames ...any) qlog.PacketSent {
	e := sent(qlog.PacketType1RTT, 0, frames...)
	e.Header.PacketNumber = number
	return e
}

func stream(id qlog.StreamID, offset, length int64, fin bool) *qlog.StreamFrame {
	return &qlog.StreamFrame{StreamID: id, Offset: offset, Length: length, Fin: fin}
}

func ackOf(smallest, largest qlog.PacketNumber) qlog.PacketReceived {
	ack := &qlog.AckFrame{AckRanges: []qlog.AckRange{{Smallest: smallest, Largest: largest}}}
	return qlog.PacketReceived{
		Header: qlog.PacketHeader{PacketType: qlog.PacketType1RTT}, Frames: []qlog.Frame{{Frame: ack}},
	}
}

func lossOf(number qlog.PacketNumber) qlog.PacketLost {
	return qlog.PacketLost{Header: qlog.PacketHeader{PacketType: qlog.PacketType1RTT, PacketNumber: number}}
}

func TestAStreamIsAcknowledgedWhenAllOfItIsWithItsEnd(t *testing.T) {
	f, r, _ := following(t)
	r.RecordEvent(packetWith(1, stream(3, 0, 1000, false)))
	r.RecordEvent(packetWith(2, stream(3, 1000, 500, false), stream(7, 0, 200, true)))
	r.RecordEvent(packetWith(3, stream(3, 1500, 0, true)))
	for i, c := range []struct {
		event qlogwriter.Event
		right [2]bool // of streams 3 and 7
	}{
		{ackOf(1, 1), [2]bool{false, false}},
		{ackOf(3, 3), [2]bool{false, false}},
		{ackOf(1, 3), [2]bool{true, true}},
	} {
		r.RecordEvent(c.event)
		if got := [2]bool{f.Acknowledged(3, 1500), f.Acknowledged(7, 200)}; got != c.right {
			t.Errorf("after event %d: %v", i, got)
		}
	}
	if f.Acknowledged(3, 1501) || !f.Settled(3, 1500) || f.Number() != 1 {
		t.Errorf("%+v", f)
	}
	select {
	case <-f.Changed:
	default:
		t.Error("nobody was told of the acknowledgements")
	}
}

func TestWhatWasDeclaredLostIsNotAcknowledgedBeforeItsRepetitionIs(t *testing.T) {
	f, r, _ := following(t)
	r.RecordEvent(packetWith(1, stream(3, 0, 1000, true)))
	r.RecordEvent(lossOf(1))
	r.RecordEvent(packetWith(2, stream(3, 0, 600, false)))
	r.RecordEvent(packetWith(3, stream(3, 600, 400, true)))
	r.RecordEvent(ackOf(1, 2)) // the first one was merely late: quic-go sends the rest again all the same
	if f.Acknowledged(3, 1000) {
		t.Error("acknowledged before the last repetition was")
	}
	r.RecordEvent(ackOf(3, 3))
	if !f.Acknowledged(3, 1000) || !f.Settled(3, 1000) {
		t.Error("not acknowledged")
	}
}

// After a probe timeout there are two copies, and the loss of either makes quic-go send another one.
func TestAStreamIsNotSettledWhileACopyIsOnItsWay(t *testing.T) {
	f, r, _ := following(t)
	r.RecordEvent(packetWith(1, stream(3, 0, 1000, true)))
	r.RecordEvent(packetWith(2, stream(3, 0, 1000, true)))
	r.RecordEvent(ackOf(1, 1))
	if !f.Acknowledged(3, 1000) || f.Settled(3, 1000) {
		t.Error("settled with a copy on its way, or not acknowledged")
	}
	r.RecordEvent(ackOf(2, 2))
	if !f.Settled(3, 1000) {
		t.Error("not settled")
	}
	f.Forget(3)
	if f.Acknowledged(3, 1000) {
		t.Error("not forgotten")
	}
}

func TestDatagramsThatQUICThrowsAwayAreCounted(t *testing.T) {
	_, r, o := following(t)
	for range 3 {
		r.RecordEvent(qlog.DatagramDropped{Direction: qlog.DirectionReceiving})
	}
	r.RecordEvent(qlog.DatagramDropped{Direction: qlog.DirectionSending})
	if dropped, overflowed := o.Datagrams.Dropped.Load(), o.Datagrams.Overflowed.Load(); dropped != 1 || overflowed != 3 {
		t.Errorf("%d dropped, %d overflowed", dropped, overflowed)
	}
}
