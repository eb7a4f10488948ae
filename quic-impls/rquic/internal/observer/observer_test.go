package observer

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/qlog"
	"github.com/quic-go/quic-go/qlogwriter"
	"github.com/quic-go/quic-go/testutils/events"

	"github.com/fecbench/fecbench/quic-impls/rquic/internal/header"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/series"
)

// listener keeps what it hears.
type listener struct {
	heard    []SentPacket
	judged   []Judgement
	counted  Progress
	progress Progress
	closed   int

	rebuilt *Recovery // the next packet that is judged
	unknown bool      // it isn't known which one that is
}

func (l *listener) PacketSent(p SentPacket) { l.heard = append(l.heard, p) }
func (l *listener) Counted(p Progress)      { l.counted = p }
func (l *listener) Progressed(p Progress)   { l.progress = p }
func (l *listener) Closed()                 { l.closed++ }

func (l *listener) PacketJudged(j Judgement) (rebuilt *Recovery, known bool) {
	l.judged = append(l.judged, j)
	return l.rebuilt, !l.unknown
}

func listening(t *testing.T) (*Observer, qlogwriter.Trace, *listener) {
	t.Helper()
	l := &listener{}
	o := &Observer{Open: func(int) Connection { return l }}
	return o, o.Trace(t.Context(), true, quic.ConnectionID{}), l
}

func sent(packetType qlog.PacketType, checksum qlog.DatagramPayloadChecksum, frames ...any) qlog.PacketSent {
	e := qlog.PacketSent{Header: qlog.PacketHeader{PacketType: packetType}, DatagramPayloadChecksum: checksum}
	e.Raw.Length = 100
	for _, f := range frames {
		e.Frames = append(e.Frames, qlog.Frame{Frame: f})
	}
	return e
}

func TestWhatAPacketIsFollowsFromItsFrames(t *testing.T) {
	for name, c := range map[string]struct {
		frames []any
		right  SentPacket
	}{
		"nothing but an ACK": {[]any{&qlog.AckFrame{}}, SentPacket{Length: 100}},
		"a ping":             {[]any{&qlog.PingFrame{}}, SentPacket{Length: 100, AckEliciting: true}},
		"an ACK and data":    {[]any{&qlog.AckFrame{}, &qlog.StreamFrame{}}, SentPacket{Length: 100, AckEliciting: true}},
		"the end of a stream": {
			[]any{&qlog.StreamFrame{}, &qlog.StreamFrame{Fin: true}},
			SentPacket{Length: 100, AckEliciting: true, EndsStream: true},
		},
		"a close": {[]any{&qlog.AckFrame{}, &qlog.ConnectionCloseFrame{}}, SentPacket{Length: 100, Closes: true}},
	} {
		_, trace, l := listening(t)
		trace.AddProducer().RecordEvent(sent(qlog.PacketType1RTT, 0, c.frames...))
		if !slices.Equal(l.heard, []SentPacket{c.right}) {
			t.Errorf("%s: heard %+v", name, l.heard)
		}
	}
}

func TestOnlyDatagramsThatBeginWithAShortHeaderAreAnnounced(t *testing.T) {
	_, trace, l := listening(t)
	recorder := trace.AddProducer()
	for _, e := range []qlog.PacketSent{
		sent(qlog.PacketTypeInitial, 7), sent(qlog.PacketTypeHandshake, 7), sent(qlog.PacketType1RTT, 7), // one datagram
		sent(qlog.PacketTypeHandshake, 8), sent(qlog.PacketType1RTT, 9), // two
		sent(qlog.PacketType1RTT, 0), // one more, after the handshake
	} {
		recorder.RecordEvent(e)
	}
	if len(l.heard) != 2 {
		t.Errorf("%d packets were announced, right is 2", len(l.heard))
	}
}

func TestAConnectionIsClosedWithTheLastOfItsLayers(t *testing.T) {
	_, trace, l := listening(t)
	layers := []qlogwriter.Recorder{trace.AddProducer(), trace.AddProducer()}
	for i, layer := range layers {
		if l.closed != 0 {
			t.Errorf("closed with layer %d", i)
		}
		if err := layer.Close(); err != nil {
			t.Error(err)
		}
	}
	if l.closed != 1 {
		t.Errorf("closed %d times", l.closed)
	}
}

func TestTheCongestionWindowHasARowForEachChangeOfWhatItsColumnsAre(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cwnd.series.csv")
	synctest.Test(t, func(t *testing.T) {
		o := &Observer{} // nobody listens
		o.Congestion = o.Recording.Begin(path, CongestionColumns...)
		recorder := o.Trace(t.Context(), false, quic.ConnectionID{}).AddProducer()
		for _, e := range []qlog.MetricsUpdated{
			{CongestionWindow: 40064, BytesInFlight: 1252},
			{CongestionWindow: 40064, BytesInFlight: 1252, LatestRTT: time.Millisecond, RTTVariance: 1},
			{CongestionWindow: 40064, BytesInFlight: 0, SmoothedRTT: 25250 * time.Microsecond},
			{CongestionWindow: 41316, BytesInFlight: 0, SmoothedRTT: 25250 * time.Microsecond},
		} {
			time.Sleep(time.Second)
			recorder.RecordEvent(e)
		}
		if err := o.Recording.Write(); err != nil {
			t.Error(err)
		}
	})
	text, err := os.ReadFile(path)
	right := "t_s,connection,congestion_window_bytes,bytes_in_flight,smoothed_rtt_ms\n" +
		"1.000000,0,40064,1252,0\n3.000000,0,40064,0,25.25\n4.000000,0,41316,0,25.25\n"
	if err != nil || string(text) != right {
		t.Errorf("%v, %q", err, text)
	}
}

func TestFlushWaitsForTheFiles(t *testing.T) {
	t.Setenv("QLOGDIR", t.TempDir())
	o := &Observer{Qlog: qlog.DefaultConnectionTracer}
	recorder := o.Trace(t.Context(), false, quic.ConnectionID{}).AddProducer()
	flushed := make(chan error, 1)
	go func() { flushed <- o.Flush() }()
	select {
	case <-flushed:
		t.Fatal("flushed while the connection is open")
	case <-time.After(50 * time.Millisecond):
	}
	if err := recorder.Close(); err != nil {
		t.Error(err)
	}
	if err := <-flushed; err != nil {
		t.Error(err)
	}
}

func TestEveryPacketIsCountedOnceAsDeliveredOrLost(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 0))
		_, trace, l := listening(t)
		recorder := trace.AddProducer()
		var next int64
		inFlight := map[int64]bool{}
		var right Progress
		for range 300 {
			for range random.IntN(200) {
				next += 1 + int64(random.IntN(20)/19) // now and then, QUIC leaves a number out
				e := sent(qlog.PacketType1RTT, 0, &qlog.StreamFrame{})
				if random.IntN(10) == 0 {
					e = sent(qlog.PacketType1RTT, 0, &qlog.AckFrame{})
				} else {
					inFlight[next] = true
				}
				e.Header.PacketNumber = qlog.PacketNumber(next)
				recorder.RecordEvent(e)
			}
			lost := random.Int64N(next + 1)
			if inFlight[lost] && lost > next-outstandingWindow {
				right.Lost++
			}
			delete(inFlight, lost)
			event := qlog.PacketLost{Header: qlog.PacketHeader{PacketType: qlog.PacketType1RTT}}
			event.Header.PacketNumber = qlog.PacketNumber(lost)
			recorder.RecordEvent(event)
			ack := &qlog.AckFrame{}
			for range 1 + random.IntN(3) {
				largest := random.Int64N(next + 1)
				smallest := max(0, largest-random.Int64N(300))
				ack.AckRanges = append(ack.AckRanges, qlog.AckRange{
					Smallest: qlog.PacketNumber(smallest), Largest: qlog.PacketNumber(largest),
				})
				for n := smallest; n <= largest; n++ {
					if inFlight[n] && n > next-outstandingWindow {
						right.Delivered++
					}
					delete(inFlight, n)
				}
			}
			recorder.RecordEvent(qlog.PacketReceived{
				Header: qlog.PacketHeader{PacketType: qlog.PacketType1RTT}, Frames: []qlog.Frame{{Frame: ack}},
			})
			if l.counted != right { // without another event: none comes after the last ACK
				t.Fatalf("seed %d: counted %+v, right is %+v", seed, l.counted, right)
			}
			right.SmoothedRTT, right.Window = time.Duration(random.IntN(1000)), random.IntN(1000)
			recorder.RecordEvent(qlog.MetricsUpdated{SmoothedRTT: right.SmoothedRTT, CongestionWindow: right.Window})
			if l.progress != right {
				t.Fatalf("seed %d: heard %+v, right is %+v", seed, l.progress, right)
			}
		}
	}
}

func TestAJudgementIsPassedOnForEachShortHeaderDatagramThatQUICRead(t *testing.T) {
	_, trace, l := listening(t)
	recorder := trace.AddProducer()
	of := func(kind qlog.PacketType, id string) qlog.PacketHeader {
		return qlog.PacketHeader{PacketType: kind, DestConnectionID: quic.ConnectionIDFromBytes([]byte(id))}
	}
	oneRTT := qlog.PacketType1RTT
	raw := qlog.RawInfo{Length: 700}
	for _, event := range []qlogwriter.Event{
		qlog.PacketReceived{Header: of(qlog.PacketTypeHandshake, "hand"), Raw: raw},
		qlog.PacketReceived{Header: of(oneRTT, "hand"), Raw: raw, DatagramPayloadChecksum: 1}, // coalesced with the former
		qlog.PacketReceived{Header: of(oneRTT, "came"), Raw: raw},
		qlog.PacketDropped{Header: of(oneRTT, "fake"), Raw: raw, Trigger: qlog.PacketDropPayloadDecryptError},
		qlog.PacketDropped{Header: of(oneRTT, "copy"), Raw: raw, Trigger: qlog.PacketDropDuplicate},
		qlog.PacketDropped{Header: of("", "full"), Raw: raw, Trigger: qlog.PacketDropDOSPrevention},
		qlog.PacketDropped{Header: of(oneRTT, "soon"), Raw: raw, Trigger: qlog.PacketDropDOSPrevention}, // too many came before their keys
		qlog.PacketDropped{Header: of("", "full"), Raw: raw, Trigger: qlog.PacketDropDOSPrevention, DatagramPayloadChecksum: 1},
		qlog.PacketDropped{Header: of(qlog.PacketTypeInitial, "hand"), Raw: raw, Trigger: qlog.PacketDropDuplicate},
	} {
		recorder.RecordEvent(event)
	}
	to := func(id string) header.ConnectionID { return header.ConnectionID([]byte(id)) }
	right := []Judgement{
		{ConnectionID: to("came"), Length: 700, Authentic: true},
		{ConnectionID: to("fake"), Length: 700},
		{ConnectionID: to("copy"), Length: 700, Authentic: true},
		{ConnectionID: to("full"), Length: 700, Unread: true},
		{ConnectionID: to("soon"), Length: 700, Unread: true},
	}
	if !slices.Equal(l.judged, right) {
		t.Errorf("%+v, right is %+v", l.judged, right)
	}
}

func TestQUICMakesEventsOnlyForThoseWhoHearThem(t *testing.T) {
	all := []qlogwriter.Kind{qlogwriter.Packets, qlogwriter.Metrics, qlogwriter.Timers}
	followed := Follow(t.Context())
	file := func(context.Context, bool, quic.ConnectionID) qlogwriter.Trace {
		return &events.Trace{Recorder: &events.Recorder{}}
	}
	open := func(int) Connection { return &listener{} }
	for name, c := range map[string]struct {
		observer *Observer
		ctx      context.Context
		right    []qlogwriter.Kind
	}{
		"nobody hears":                    {&Observer{SparesEvents: true}, t.Context(), nil},
		"nobody hears, nothing is spared": {&Observer{}, t.Context(), all},
		"a code":                          {&Observer{SparesEvents: true, Open: open}, t.Context(), all[:2]},
		"a series of the window":          {&Observer{SparesEvents: true, Congestion: &series.Series{}}, t.Context(), all[1:2]},
		"a connection that is followed":   {&Observer{SparesEvents: true}, followed, all[:1]},
		"a file":                          {&Observer{SparesEvents: true, Qlog: file}, t.Context(), all},
	} {
		recorder := c.observer.Trace(c.ctx, true, quic.ConnectionID{}).AddProducer()
		var taken []qlogwriter.Kind
		for _, kind := range all {
			if qlogwriter.Takes(recorder, kind) {
				taken = append(taken, kind)
			}
		}
		if !slices.Equal(taken, c.right) {
			t.Errorf("%s: takes kinds %v, right is %v", name, taken, c.right)
		}
	}
}
