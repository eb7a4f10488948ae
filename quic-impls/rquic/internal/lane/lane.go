// Package lane is one direction of fecbench's emulated link, with its losses, in virtual time: quic-impls/lane, through cgo.
//
// Its C files here are links to those of the repository: so Go sees when one of them, or a header, has changed.
package lane

/*
#cgo CFLAGS: -O2 -std=c11 -D_GNU_SOURCE -I${SRCDIR}/../../../lane
#cgo LDFLAGS: -lm
#include <stdlib.h>
#include "lane.h"
*/
import "C"

import (
	"errors"
	"runtime"
	"strconv"
	"strings"
	"time"
	"unsafe"
)

const (
	// Overhead is the number of bytes that a datagram over IPv4 has on the link besides its payload.
	Overhead = C.LANE_OVERHEAD
	// OverheadIPv6 is that of a datagram over IPv6.
	OverheadIPv6 = C.LANE_OVERHEAD_IPV6
	// PayloadMax is the length of the longest datagram over IPv4 that the link doesn't drop.
	PayloadMax = C.LANE_PAYLOAD_MAX
)

// Report has the lane's counters since its trial began.
type Report struct {
	FramesIn, BytesIn, FramesOut, BytesOut  uint64
	QueueDropped, OversizeDropped, InFlight uint64
	OutageDropped                           uint64 // sent while it was out
	MaxQueueBytes, MaxQueuePackets          uint64
	Dropped                                 uint64 // lost behind the link
	Conserved                               bool
}

// Exit is a datagram that has left the lane.
type Exit struct {
	At     time.Duration // when it was due
	Tag    uint64
	Length int
	Lost   bool
}

// Lane is used for one trial after another. Times are those since its trial began, and never decrease.
type Lane struct {
	c    *C.struct_lane
	exit C.struct_lane_exit
	// next is when the next datagram leaves, as long as nothing has changed: a call of C takes longer than most of what is asked.
	next    C.uint64_t
	isKnown bool
}

// New makes a lane, which has to Begin before anything else.
func New() *Lane {
	l := &Lane{c: C.lane_new()}
	if l.c == nil {
		panic("no memory for a lane")
	}
	runtime.AddCleanup(l, func(c *C.struct_lane) { C.lane_free(c) }, l.c)
	return l
}

// Begin begins a trial over the link and with the losses that a text describes (quic-impls/lane/README.md): all that was in
// the lane, counted or recorded is gone. The error is a line that says why the text is refused.
func (l *Lane) Begin(text string) error {
	if strings.ContainsRune(text, 0) {
		return errors.New("a text has a zero in it")
	}
	l.isKnown = false
	c := C.CString(text)
	defer C.free(unsafe.Pointer(c))
	if refusal := C.lane_begin(l.c, c); refusal != nil {
		return errors.New(C.GoString(refusal))
	}
	return nil
}

// Start counts the times of a schedule and of an outage from now on.
func (l *Lane) Start(now time.Duration) {
	l.isKnown = false
	C.lane_start(l.c, C.uint64_t(now))
}

// BeginFilling is called before IsFull is asked at intervals.
func (l *Lane) BeginFilling(fullShare float64, window time.Duration) {
	C.lane_begin_filling(l.c, C.double(fullShare), C.uint64_t(window))
}

// IsFull reports whether the lane has carried its full share for the window.
func (l *Lane) IsFull(now time.Duration) bool { return bool(C.lane_is_full(l.c, C.uint64_t(now))) }

// Send sends a datagram, with a tag that travels with it. False: the link drops it.
func (l *Lane) Send(datagram []byte, tag uint64, now time.Duration) bool {
	l.isKnown = false
	return bool(C.lane_send(l.c, (*C.uint8_t)(unsafe.SliceData(datagram)), C.uint32_t(len(datagram)), C.uint64_t(tag), 0, C.uint64_t(now)))
}

// NextExit returns when the next datagram leaves; false if there is none.
func (l *Lane) NextExit() (time.Duration, bool) {
	if !l.isKnown {
		l.next, l.isKnown = C.lane_next_exit(l.c), true
	}
	return time.Duration(l.next), l.next != C.LANE_NEVER
}

// Receive copies the next datagram that has left the lane; false when there is none.
func (l *Lane) Receive(now time.Duration, datagram *[PayloadMax]byte) (Exit, bool) {
	if next, ok := l.NextExit(); !ok || next > now {
		return Exit{}, false
	}
	l.isKnown = false
	if !C.lane_receive(l.c, C.uint64_t(now), (*C.uint8_t)(&datagram[0]), &l.exit) {
		return Exit{}, false
	}
	return Exit{time.Duration(l.exit.at_ns), uint64(l.exit.tag), int(l.exit.length), bool(l.exit.lost)}, true
}

// Report returns the counters of the trial until now.
func (l *Lane) Report() Report {
	r := C.lane_report(l.c)
	return Report{
		FramesIn: uint64(r.frames_in), BytesIn: uint64(r.bytes_in), FramesOut: uint64(r.frames_out), BytesOut: uint64(r.bytes_out),
		QueueDropped: uint64(r.queue_dropped), OversizeDropped: uint64(r.oversize_dropped), InFlight: uint64(r.in_flight),
		OutageDropped: uint64(r.outage_dropped),
		MaxQueueBytes: uint64(r.max_queue_bytes), MaxQueuePackets: uint64(r.max_queue_packets),
		Dropped: uint64(r.dropped), Conserved: bool(r.conserved),
	}
}

// Counted returns the counters of effects that most links lack, those above 0, by the names that the harness has for them.
func (l *Lane) Counted() map[string]uint64 {
	var text [C.LANE_COUNTED]C.char
	C.lane_counted(l.c, &text[0])
	counted := map[string]uint64{}
	for line := range strings.Lines(C.GoString(&text[0])) {
		name, count, _ := strings.Cut(strings.TrimSpace(line), " ")
		counted[name], _ = strconv.ParseUint(count, 10, 64)
	}
	return counted
}

// Times is a hash of when each datagram was sent and when it left, and of its length.
func (l *Lane) Times() uint64 { return uint64(C.lane_times(l.c)) }

// Arrivals returns when the packets of Verdicts left the link, 8 bytes each: in ns since the first. Nil: losses do not depend on
// it.
func (l *Lane) Arrivals() []byte {
	var recorded C.uint64_t
	C.lane_verdicts(l.c, &recorded)
	times := C.lane_arrivals(l.c)
	if times == nil {
		return nil
	}
	return C.GoBytes(unsafe.Pointer(times), C.int(8*recorded))
}

// Verdicts of the packets that left the link, as many as are recorded: bit n % 8 of byte n / 8 is set when packet n was lost.
func (l *Lane) Verdicts() (bitmap []byte, packets uint64) {
	var recorded C.uint64_t
	bits := C.lane_verdicts(l.c, &recorded)
	return C.GoBytes(unsafe.Pointer(bits), C.int((recorded+7)/8)), uint64(recorded)
}
