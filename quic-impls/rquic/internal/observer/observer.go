// Package observer hears from quic-go, through its public qlog events, what a
// packet below it can't show any more once it is encrypted: whether it has to be
// acknowledged, and whether it ends a stream; and what became of it: acknowledged or lost. It also counts what
// quic-go's statistics leave out, and passes all events on to whoever writes them down.
package observer

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/qlog"
	"github.com/quic-go/quic-go/qlogwriter"

	"github.com/fecbench/fecbench/quic-impls/rquic/internal/header"
	"github.com/fecbench/fecbench/quic-impls/rquic/internal/series"
)

// SentPacket describes a 1-RTT packet that quic-go is about to write as a datagram of its own.
type SentPacket struct {
	ConnectionID header.ConnectionID // the destination's
	Length       int                 // of the datagram in bytes
	AckEliciting bool                // RFC 9002, §2
	EndsStream   bool                // it carries the end of a stream
	Closes       bool                // it closes the connection, so quic-go may repeat it without an event
}

// Judgement is what QUIC made of a datagram that begins with a short-header packet. Nothing in it says which datagram that was:
// a connection's judgements come in the order in which it read them.
type Judgement struct {
	ConnectionID header.ConnectionID // the destination's
	Length       int                 // of the datagram in bytes
	Authentic    bool                // it could be decrypted
	// Unread means that QUIC's queue was full, so that it never came to the datagram: it is the last one that was handed over.
	Unread bool
}

// Connection hears of one QUIC connection's packets, in the order in which they'll be written.
type Connection interface {
	PacketSent(SentPacket)
	// PacketJudged is called for each datagram that QUIC read, and that begins with a short-header packet. It returns what was
	// rebuilt, if that is it; known is false where nobody can tell which datagram it was.
	PacketJudged(Judgement) (rebuilt *Recovery, known bool)
	// Counted is called when packets were acknowledged or declared lost.
	Counted(Progress)
	// Progressed is called when acknowledgements came, before those that came last are counted, and when a packet that needs one
	// was sent.
	Progressed(Progress)
	// Closed means that no more events will come.
	Closed()
}

// Observer makes the traces for quic.Config.Tracer.
type Observer struct {
	// Open is called for every new connection, with its number in Recording; nil when nobody has to hear of packets.
	Open func(number int) Connection
	// Qlog makes the trace that all events of a new connection are passed on to; nil, or a trace that is nil, when nobody wants
	// them.
	Qlog func(ctx context.Context, isClient bool, id quic.ConnectionID) qlogwriter.Trace
	// Recording has the series, and numbers the connections.
	Recording series.Recording
	// Congestion takes the congestion windows over time, with the columns CongestionColumns; nil when nobody asked for it.
	Congestion *series.Series
	// Datagrams counts those of RFC 9221 that quic-go threw away.
	Datagrams struct{ Dropped, Overflowed atomic.Int64 }
	// Recoveries judges what was rebuilt, when Open is there.
	Recoveries Recoveries
	// SparesEvents has QUIC make no event that nobody hears. Otherwise it makes all of them, so that tracing costs all arms the same.
	SparesEvents bool

	files sync.WaitGroup // recorders with a qlog file
}

// flushTimeout is the longest wait of Flush; the layers of a closed connection end far sooner.
const flushTimeout = 5 * time.Second

// Flush waits until the qlog files of all connections are complete, which have to be closed.
func (o *Observer) Flush() error {
	complete := make(chan struct{})
	go func() {
		o.files.Wait()
		close(complete)
	}()
	select {
	case <-complete:
		return nil
	case <-time.After(flushTimeout):
		return fmt.Errorf("QLOGDIR: a qlog file was not complete %v after its connection closed", flushTimeout)
	}
}

// Trace has the signature of quic.Config.Tracer.
func (o *Observer) Trace(ctx context.Context, isClient bool, id quic.ConnectionID) qlogwriter.Trace {
	t := &trace{observer: o}
	if o.Qlog != nil {
		t.file = o.Qlog(ctx, isClient, id)
	}
	t.congestion.number = o.Recording.Open()
	if t.followed = FollowedBy(ctx); t.followed != nil {
		t.followed.number = t.congestion.number
	}
	if o.Open != nil {
		t.connection = o.Open(t.congestion.number)
	}
	return t
}

// trace has a recorder for each of the layers of a connection: QUIC, and HTTP/3 when it is used.
type trace struct {
	observer   *Observer
	connection Connection
	followed   *Followed        // nil when nobody follows the connection
	file       qlogwriter.Trace // nil when nobody wants the events
	producers  atomic.Int32

	mu sync.Mutex
	// Checksum of the last datagram that began with a long-header packet. A 1-RTT packet whose
	// event has the same one is coalesced into that datagram, and isn't written on its own.
	longHeader  qlog.DatagramPayloadChecksum
	outstanding outstanding
	progress    Progress
	congestion  congestion
	arrivals    arrivals
}

func (t *trace) AddProducer() qlogwriter.Recorder {
	t.producers.Add(1)
	r := &recorder{trace: t}
	if t.file != nil {
		r.file = t.file.AddProducer() // nil once the file is complete
	}
	if r.file != nil {
		t.observer.files.Add(1)
	}
	return r
}

type recorder struct {
	trace *trace
	file  qlogwriter.Recorder
}

func (r *recorder) RecordEvent(event qlogwriter.Event) {
	r.trace.observe(event)
	if r.file != nil {
		r.file.RecordEvent(event)
	}
}

// Takes implements qlogwriter.Selective.
func (r *recorder) Takes(kind qlogwriter.Kind) bool {
	t := r.trace
	switch {
	case !t.observer.SparesEvents || t.connection != nil && kind != qlogwriter.Timers || qlogwriter.Takes(r.file, kind):
		return true
	case kind == qlogwriter.Packets:
		return t.followed != nil
	default:
		return kind == qlogwriter.Metrics && t.observer.Congestion != nil
	}
}

func (r *recorder) Close() error {
	if r.trace.producers.Add(-1) == 0 && r.trace.connection != nil {
		r.trace.connection.Closed()
	}
	if r.file == nil {
		return nil
	}
	defer r.trace.observer.files.Done()
	return r.file.Close()
}

func (t *trace) observe(event qlogwriter.Event) {
	t.follow(event)
	if t.connection == nil && t.observer.Congestion == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if e, updated := event.(qlog.MetricsUpdated); updated && t.observer.Congestion != nil {
		t.congestion.update(t.observer.Congestion, &e)
	}
	if t.connection != nil {
		t.inform(event)
	}
}

// inform tells the connection what it has to hear.
func (t *trace) inform(event qlogwriter.Event) {
	switch e := event.(type) {
	case qlog.PacketSent:
		t.packetSent(&e)
	case qlog.PacketReceived:
		t.packetReceived(&e, t.accept(&e))
	case qlog.PacketDropped:
		t.refuse(&e)
	case qlog.PacketLost:
		if e.Header.PacketType == qlog.PacketType1RTT && t.outstanding.lost(int64(e.Header.PacketNumber)) {
			t.progress.Lost++
			t.connection.Counted(t.progress)
		}
	case qlog.MetricsUpdated:
		if e.MinRTT > 0 {
			t.progress.MinRTT = e.MinRTT
		}
		t.progress.SmoothedRTT, t.progress.Window = e.SmoothedRTT, e.CongestionWindow
		t.connection.Progressed(t.progress)
	}
}

func (t *trace) packetSent(e *qlog.PacketSent) {
	if e.Header.PacketType != qlog.PacketType1RTT {
		t.longHeader = e.DatagramPayloadChecksum
		return
	}
	ackEliciting := slices.ContainsFunc(e.Frames, isAckEliciting)
	if ackEliciting {
		t.outstanding.sent(int64(e.Header.PacketNumber))
	}
	if e.DatagramPayloadChecksum != 0 && e.DatagramPayloadChecksum == t.longHeader {
		return
	}
	sent := SentPacket{
		Length:       e.Raw.Length,
		AckEliciting: ackEliciting,
		EndsStream:   slices.ContainsFunc(e.Frames, endsStream),
		Closes:       slices.ContainsFunc(e.Frames, closes),
	}
	copy(sent.ConnectionID[:], e.Header.DestConnectionID.Bytes())
	t.connection.PacketSent(sent)
}

// accept passes on that a packet could be decrypted, and returns what was rebuilt, if that is it. One with a checksum came
// behind a long-header packet.
func (t *trace) accept(e *qlog.PacketReceived) *Recovery {
	if e.Header.PacketType != qlog.PacketType1RTT || e.DatagramPayloadChecksum != 0 {
		return nil
	}
	return t.judge(&e.Header, Judgement{Length: e.Raw.Length, Authentic: true})
}

// refuse passes on that a packet was dropped. A duplicate was decrypted before.
func (t *trace) refuse(e *qlog.PacketDropped) {
	unread := isUnread(e)
	if e.DatagramPayloadChecksum != 0 || e.Header.PacketType != qlog.PacketType1RTT && !unread {
		return
	}
	duplicate := e.Trigger == qlog.PacketDropDuplicate
	rebuilt := t.judge(&e.Header, Judgement{Length: e.Raw.Length, Authentic: duplicate, Unread: unread})
	if duplicate && rebuilt != nil { // QUIC takes packets that are older than all gaps that it knows of for ones that it had
		rebuilt.countTooLate()
	}
}

// judge passes on a judgement on a packet with a header.
func (t *trace) judge(h *qlog.PacketHeader, j Judgement) *Recovery {
	copy(j.ConnectionID[:], h.DestConnectionID.Bytes())
	rebuilt, known := t.connection.PacketJudged(j)
	if !known {
		t.observer.Recoveries.doubt()
	}
	if rebuilt != nil && j.Authentic {
		rebuilt.take()
	}
	return rebuilt
}

// isUnread reports whether the packet that was read last had no place in QUIC's queue, or among those that wait for their keys.
func isUnread(e *qlog.PacketDropped) bool {
	kind := e.Header.PacketType
	return (kind == "" || kind == qlog.PacketType1RTT) && e.Trigger == qlog.PacketDropDOSPrevention
}

func (t *trace) packetReceived(e *qlog.PacketReceived, rebuilt *Recovery) {
	if e.Header.PacketType != qlog.PacketType1RTT {
		return
	}
	t.arrivals.packet(e, rebuilt, time.Now(), t.progress.MinRTT/2)
	for _, f := range e.Frames {
		if ack, ok := f.Frame.(*qlog.AckFrame); ok {
			for _, r := range ack.AckRanges {
				t.progress.Delivered += t.outstanding.acknowledged(int64(r.Smallest), int64(r.Largest))
			}
			t.connection.Counted(t.progress)
		}
	}
}

func isAckEliciting(f qlog.Frame) bool {
	_, isAck := f.Frame.(*qlog.AckFrame)
	return !isAck && !closes(f) // padding has no event
}

func endsStream(f qlog.Frame) bool {
	stream, ok := f.Frame.(*qlog.StreamFrame)
	return ok && stream.Fin
}

func closes(f qlog.Frame) bool {
	_, ok := f.Frame.(*qlog.ConnectionCloseFrame)
	return ok
}
