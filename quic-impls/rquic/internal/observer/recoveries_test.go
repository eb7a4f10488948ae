package observer

import (
	"slices"
	"testing"
	"time"

	"github.com/quic-go/quic-go/qlog"

	"github.com/fecbench/fecbench/quic-impls/rquic/internal/header"
)

// connection plays what a receiver reads and QUIC tells of.
type connection struct {
	recoveries Recoveries
	arrivals   arrivals
	at         time.Time
}

const oneWay = 50 * time.Millisecond

// datagram is a packet whose content is these bytes.
func datagram(content ...byte) []byte { return append([]byte{0x40, 1, 2, 3, 4}, content...) }

func (c *connection) reads(packet []byte, rebuilt bool, frames ...qlog.StreamFrame) {
	if rebuilt {
		c.recoveries.Rebuilt(packet)
	}
	c.recoveries.Delivered(packet, rebuilt)
	e := qlog.PacketReceived{Raw: qlog.RawInfo{Length: len(packet)}}
	e.Header.DestConnectionID = qlog.ConnectionID{}
	for _, f := range frames {
		e.Frames = append(e.Frames, qlog.Frame{Frame: &f})
	}
	c.arrivals.id = header.ConnectionID(packet[1:])
	c.arrivals.packet(&c.recoveries, &e, c.at, oneWay)
}

func (c *connection) expect(t *testing.T, what string, right int64) {
	t.Helper()
	if late, known := c.recoveries.Late(); late != right || !known {
		t.Errorf("%s: %d late, known: %v; right is %d", what, late, known, right)
	}
}

func data(start, end int64) qlog.StreamFrame {
	return qlog.StreamFrame{Offset: start, Length: end - start}
}

func TestARecoveryIsLateIfItsDataWasThereOrOnItsWay(t *testing.T) {
	for name, c := range map[string]struct {
		before  []qlog.StreamFrame
		after   qlog.StreamFrame
		waiting time.Duration
		late    int64
	}{
		"news":                      {nil, data(200, 300), 0, 0},
		"there":                     {[]qlog.StreamFrame{data(150, 250), data(100, 150)}, data(200, 300), 0, 1},
		"there but for a part":      {[]qlog.StreamFrame{data(100, 150), data(151, 250)}, data(200, 300), 0, 0},
		"on its way":                {nil, data(199, 300), oneWay, 1},
		"sent again afterwards":     {nil, data(199, 300), oneWay + 1, 0},
		"beside it, not on its way": {nil, data(0, 100), oneWay, 0},
	} {
		play := &connection{at: time.Unix(0, 0)}
		for i, f := range c.before {
			play.reads(datagram(byte(i)), false, f)
		}
		play.reads(datagram(100), true, data(100, 200))
		play.at = play.at.Add(c.waiting)
		play.reads(datagram(101), false, c.after)
		play.expect(t, name, c.late)
		play.recoveries.Came(datagram(100))
		play.expect(t, name+", and it came", 1)
	}
}

func TestAnEndIsNewsToAStream(t *testing.T) {
	end := data(100, 100)
	end.Fin = true
	for _, known := range []bool{false, true} {
		play := &connection{at: time.Unix(0, 0)}
		play.reads(datagram(1), false, data(0, 100))
		if known {
			play.reads(datagram(2), false, end)
		}
		play.reads(datagram(3), true, end)
		play.expect(t, "an end", map[bool]int64{false: 0, true: 1}[known])
	}
}

func TestNothingIsSaidWhenQUICTellsOfAnotherPacket(t *testing.T) {
	play := &connection{}
	play.recoveries.Delivered(datagram(1, 2), false)
	play.reads(datagram(1), false, data(0, 1))
	if _, known := play.recoveries.Late(); known {
		t.Error("packets of other lengths were taken for those that were read")
	}
}

func TestAPacketThatQUICHadNoRoomForIsNotWaitedFor(t *testing.T) {
	play := &connection{}
	play.recoveries.Delivered(datagram(1), false)
	play.recoveries.Delivered(datagram(1, 2), false)
	play.recoveries.unread(header.ConnectionID(datagram()[1:]))
	e := qlog.PacketReceived{Raw: qlog.RawInfo{Length: len(datagram(1))}}
	e.Header.DestConnectionID = qlog.ConnectionID{}
	play.arrivals.id = header.ConnectionID(datagram()[1:])
	play.arrivals.packet(&play.recoveries, &e, play.at, oneWay)
	play.reads(datagram(3, 4, 5), true, data(0, 1))
	play.expect(t, "a packet without room", 0)
}

func TestWhatIsReceivedOfAStreamIsKeptInOrderAndApart(t *testing.T) {
	var s received
	for _, added := range []span{{10, 20}, {30, 40}, {0, 5}, {20, 25}, {22, 30}, {50, 60}, {5, 10}} {
		s.add(added)
	}
	if right := []span{{0, 40}, {50, 60}}; !slices.Equal(s.ranges, right) {
		t.Errorf("%v; right is %v", s.ranges, right)
	}
}
