package observer

import (
	"slices"
	"testing"
	"time"

	"github.com/quic-go/quic-go/qlog"
)

// connection plays what a receiver reads and QUIC tells of.
type connection struct {
	recoveries Recoveries
	arrivals   arrivals
	at         time.Time
}

const oneWay = 50 * time.Millisecond

// comes is QUIC's account of a packet that came.
func (c *connection) comes(frames ...qlog.StreamFrame) { c.reads(nil, frames...) }

// recovers is its account of one that was rebuilt.
func (c *connection) recovers(packet []byte, frames ...qlog.StreamFrame) *Recovery {
	rebuilt := c.recoveries.Rebuilt(packet)
	rebuilt.take()
	c.reads(rebuilt, frames...)
	return rebuilt
}

func (c *connection) reads(rebuilt *Recovery, frames ...qlog.StreamFrame) {
	e := qlog.PacketReceived{}
	for _, f := range frames {
		e.Frames = append(e.Frames, qlog.Frame{Frame: &f})
	}
	c.arrivals.packet(&e, rebuilt, c.at, oneWay)
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
		for _, f := range c.before {
			play.comes(f)
		}
		rebuilt := play.recovers([]byte("one"), data(100, 200))
		play.at = play.at.Add(c.waiting)
		play.comes(c.after)
		play.expect(t, name, c.late)
		rebuilt.Came([]byte("another"))
		play.expect(t, name+", and another one came in its place", c.late)
		rebuilt.Came([]byte("one"))
		play.expect(t, name+", and it came", 1)
	}
}

// pieces are so many frames of one byte, apart from each other.
func pieces(from int64, n int) (frames []qlog.StreamFrame) {
	for at := from; len(frames) < n; at += 2 {
		frames = append(frames, data(at, at+1))
	}
	return frames
}

// QUIC may have no room for it, or no keys any more; or it is still held when the connection is closed.
func TestWhatQUICNeverTakesIsNotLate(t *testing.T) {
	var c connection
	rebuilt := c.recoveries.Rebuilt([]byte("packet"))
	rebuilt.Came([]byte("packet"))
	c.expect(t, "not taken", 0)
	rebuilt.take()
	c.expect(t, "taken", 1)
	rebuilt.Came([]byte("packet"))
	c.expect(t, "a copy", 1)
}

func TestNoMoreIsComparedThanThePeerHasPaidForInBytes(t *testing.T) {
	const rebuilt, packets = 2 * maxRecent, 1000
	for name, c := range map[string]struct {
		frames, ranges int
		repeats        []qlog.StreamFrame
		bytes          int
		known          bool
	}{
		"empty frames":   {0, 0, slices.Repeat([]qlog.StreamFrame{data(0, 0)}, 400), 1200, true},
		"frames, apart":  {240, maxRecentRanges / 240 * 240, pieces(1, 240), 1200, true},
		"a short packet": {1, maxRecent, []qlog.StreamFrame{data(1, 2)}, 30, false},
	} {
		play := &connection{at: time.Unix(0, 0)}
		for n := range int64(rebuilt) {
			// Each has a stream of its own, so that none is news to another.
			frames := pieces(2000*n, c.frames)
			for i := range frames {
				frames[i].StreamID = qlog.StreamID(4 * n)
			}
			play.recovers([]byte("one"), frames...)
		}
		if have := play.arrivals.ranges; have != c.ranges || len(play.arrivals.recent) > maxRecent {
			t.Errorf("%s: %d ranges of %d packets are remembered", name, have, len(play.arrivals.recent))
		}
		for range packets {
			play.arrivals.comparisons.pay(c.bytes)
			play.comes(c.repeats...)
		}
		if late, known := play.recoveries.Late(); late != 0 || known != c.known {
			t.Errorf("%s: %d late, known: %v", name, late, known)
		}
		paid := int64(credit + paidByByte*packets*c.bytes)
		if made := play.arrivals.comparisons.made; made > paid {
			t.Errorf("%s: %d comparisons, %d were paid", name, made, paid)
		}
	}
}

func TestAnEndIsNewsToAStream(t *testing.T) {
	end := data(100, 100)
	end.Fin = true
	for _, known := range []bool{false, true} {
		play := &connection{at: time.Unix(0, 0)}
		play.comes(data(0, 100))
		if known {
			play.comes(end)
		}
		play.recovers([]byte("end"), end)
		play.expect(t, "an end", map[bool]int64{false: 0, true: 1}[known])
	}
}

func TestNothingIsSaidOnceNobodyKnowsWhichPacketItWas(t *testing.T) {
	for _, known := range []bool{false, true} {
		o, trace, l := listening(t)
		l.unknown = !known
		e := qlog.PacketReceived{Header: qlog.PacketHeader{PacketType: qlog.PacketType1RTT}}
		trace.AddProducer().RecordEvent(e)
		if _, said := o.Recoveries.Late(); said != known {
			t.Errorf("known: %v; something is said: %v", known, said)
		}
	}
}

// The connection returns the content of a recovered packet.
func TestAJudgedPacketIsTakenForWhatWasRebuilt(t *testing.T) {
	o, trace, l := listening(t)
	recorder := trace.AddProducer()
	for range 2 { // the second one saves nothing
		l.rebuilt = o.Recoveries.Rebuilt([]byte("one"))
		e := qlog.PacketReceived{Header: qlog.PacketHeader{PacketType: qlog.PacketType1RTT}}
		frame := data(0, 100)
		e.Frames = []qlog.Frame{{Frame: &frame}}
		recorder.RecordEvent(e)
	}
	if late, known := o.Recoveries.Late(); late != 1 || !known {
		t.Errorf("%d late, known: %v", late, known)
	}
}

func TestAPacketIsTooLateIfQUICTakesItForADuplicateAndItNeverComes(t *testing.T) {
	for name, c := range map[string]struct {
		before, after string // packets that come in its place, before QUIC reads it and afterwards
		right         int64
	}{
		"it never comes":     {"another", "another", 1},
		"it had come":        {"one", "another", 0},
		"it comes after all": {"another", "one", 0},
	} {
		o, trace, l := listening(t)
		l.rebuilt = o.Recoveries.Rebuilt([]byte("one"))
		l.rebuilt.Came([]byte(c.before))
		oneRTT := qlog.PacketHeader{PacketType: qlog.PacketType1RTT}
		trace.AddProducer().RecordEvent(qlog.PacketDropped{Header: oneRTT, Trigger: qlog.PacketDropDuplicate})
		l.rebuilt.Came([]byte(c.after))
		if late, _ := o.Recoveries.Late(); o.Recoveries.TooLate() != c.right || late != 1 {
			t.Errorf("%s: %d too late, %d late; right is %d, 1", name, o.Recoveries.TooLate(), late, c.right)
		}
	}
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
