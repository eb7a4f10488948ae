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
	"fmt"
	"runtime"
	"time"
	"unsafe"
)

const (
	// Overhead is what a datagram has more on the link, in bytes.
	Overhead = C.LANE_OVERHEAD
	// PayloadMax is the length of the longest datagram that the link doesn't drop.
	PayloadMax = C.LANE_PAYLOAD_MAX
)

// Settings of a lane. One of the queue's limits is above 0.
type Settings struct {
	RateBPS      uint64
	Delay        time.Duration
	QueueBytes   uint64
	QueuePackets uint64
	QueueTime    time.Duration // what the present rate of a schedule sends meanwhile
	CoDel        bool          // drops what has waited too long, besides
	Losses       Losses
	Pattern      *Pattern // takes the place of Losses
	Outage       *Outage
	Schedule     *Schedule
	Jitter       Jitter
	Reorder      bool // a datagram that is delayed by less may overtake
}

// Jitter is noise of the delay: its law, its mean, and the seed that decides it for each datagram by its number. No law: none.
type Jitter struct {
	Law  JitterLaw
	Mean time.Duration
	Seed uint64
}

// JitterLaw says how the noise is distributed.
type JitterLaw int

const (
	Uniform JitterLaw = C.JITTER_UNIFORM
	Normal  JitterLaw = C.JITTER_NORMAL
	Pareto  JitterLaw = C.JITTER_PARETO
)

// Schedule is how rate and delay change since Start, from an offset on.
type Schedule struct {
	Steps  []Step
	Repeat Repeat
	Offset time.Duration
}

// Step lasts until a time since the schedule's beginning. Burst bytes may leave at its end besides.
type Step struct{ EndNS, RateBPS, DelayNS, Burst uint64 }

// Repeat is what comes after the last step.
type Repeat int

const (
	Loops Repeat = C.SCHEDULE_LOOPS // all steps again
	Holds Repeat = C.SCHEDULE_HOLDS // the last one for good
	Ends  Repeat = C.SCHEDULE_ENDS  // the rate and the delay of the settings
)

// Outage is when a lane takes nothing: from the one time until the other, since Start.
type Outage struct{ From, To time.Duration }

// Losses are a seed and the thresholds of a Gilbert-Elliott model (dropper/losses.h); all 0 for none.
// With GoodUS and BadUS, the clock ends its states, after these times in the mean.
type Losses struct{ Seed, LossGood, LossBad, GoodToBad, BadToGood, GoodUS, BadUS uint64 }

// Pattern says of each packet whether it is lost: bit n % 8 of byte n / 8 is that of packet n.
type Pattern struct {
	Bits    []byte
	Packets uint64
	Repeats bool
	SlotNS  uint64 // if not 0, the bits are of slots of time that last so long
	Seed    uint64 // draws the first slot of those that repeat
}

// Report has the lane's counters since its trial began.
type Report struct {
	FramesIn, BytesIn, FramesOut, BytesOut  uint64
	QueueDropped, OversizeDropped, InFlight uint64
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
	c           *C.struct_lane
	exit        C.struct_lane_exit
	outage      *Outage
	isScheduled bool
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

// Begin begins a trial: all that was in the lane, counted or recorded is gone.
func (l *Lane) Begin(s Settings) error {
	settings := C.struct_lane_settings{
		rate_bps: C.uint64_t(s.RateBPS), delay_ns: C.uint64_t(s.Delay),
		queue_bytes: C.uint64_t(s.QueueBytes), queue_packets: C.uint64_t(s.QueuePackets), queue_ns: C.uint64_t(s.QueueTime),
		codel: C.bool(s.CoDel),
		seed:  C.uint64_t(s.Losses.Seed), loss_good: C.uint64_t(s.Losses.LossGood), loss_bad: C.uint64_t(s.Losses.LossBad),
		good_to_bad: C.uint64_t(s.Losses.GoodToBad), bad_to_good: C.uint64_t(s.Losses.BadToGood),
		good_us: C.uint64_t(s.Losses.GoodUS), bad_us: C.uint64_t(s.Losses.BadUS),
	}
	settings.jitter = C.struct_jitter{law: C.enum_jitter_law(s.Jitter.Law), mean_ns: C.uint64_t(s.Jitter.Mean), seed: C.uint64_t(s.Jitter.Seed)}
	settings.reorder = C.bool(s.Reorder)
	if s.Pattern != nil {
		if uint64(len(s.Pattern.Bits)) != (s.Pattern.Packets+7)/8 {
			return fmt.Errorf("a pattern of %d packets has %d bytes", s.Pattern.Packets, len(s.Pattern.Bits))
		}
		bits := C.CBytes(append(s.Pattern.Bits, 0)) // one without packets is a pattern, too
		defer C.free(bits)
		settings.pattern = (*C.uint8_t)(bits)
		settings.pattern_packets, settings.pattern_repeats = C.uint64_t(s.Pattern.Packets), C.bool(s.Pattern.Repeats)
		settings.slot_ns, settings.seed = C.uint64_t(s.Pattern.SlotNS), C.uint64_t(s.Pattern.Seed)
	}
	if s.Schedule != nil {
		steps := C.CBytes(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s.Schedule.Steps))), len(s.Schedule.Steps)*C.sizeof_struct_schedule_step))
		defer C.free(steps)
		settings.schedule = C.struct_schedule{
			steps: (*C.struct_schedule_step)(steps), count: C.uint64_t(len(s.Schedule.Steps)),
			repeat: C.enum_schedule_repeat(s.Schedule.Repeat), offset_ns: C.uint64_t(s.Schedule.Offset),
		}
	}
	if s.Delay < 0 || !C.lane_begin(l.c, &settings) {
		if s.Schedule != nil {
			return errors.New("schedule: its steps must end one after another, and carry something; or not one limit of the queue")
		}
		return errors.New("no rate, a delay below 0, or not one of queue_bytes and queue_packets above 0")
	}
	l.outage, l.isScheduled = s.Outage, s.Schedule != nil
	return nil
}

// Start counts the times of the schedule and of the outage, if there are any, from now on.
func (l *Lane) Start(now time.Duration) {
	if l.isScheduled {
		C.lane_start(l.c, C.uint64_t(now))
	}
	if l.outage != nil {
		C.lane_start_outage(l.c, C.uint64_t(now), C.uint64_t(l.outage.From), C.uint64_t(l.outage.To))
	}
}

// OutageDropped is how many datagrams were sent during the outage; nil: there is none.
func (l *Lane) OutageDropped() *uint64 {
	if l.outage == nil {
		return nil
	}
	dropped := uint64(C.lane_outage_dropped(l.c))
	return &dropped
}

// Send sends a datagram, with a tag that travels with it. False: the link drops it.
func (l *Lane) Send(datagram []byte, tag uint64, now time.Duration) bool {
	return bool(C.lane_send(l.c, (*C.uint8_t)(unsafe.SliceData(datagram)), C.uint32_t(len(datagram)), C.uint64_t(tag), C.uint64_t(now)))
}

// NextExit is when the next datagram leaves; false when there is none.
func (l *Lane) NextExit() (time.Duration, bool) {
	next := uint64(C.lane_next_exit(l.c))
	return time.Duration(next), next != C.LANE_NEVER
}

// Receive copies the next datagram that has left the lane; false when there is none.
func (l *Lane) Receive(now time.Duration, datagram *[PayloadMax]byte) (Exit, bool) {
	if !C.lane_receive(l.c, C.uint64_t(now), (*C.uint8_t)(&datagram[0]), &l.exit) {
		return Exit{}, false
	}
	return Exit{time.Duration(l.exit.at_ns), uint64(l.exit.tag), int(l.exit.length), bool(l.exit.lost)}, true
}

// Report tells what has happened in the trial until now.
func (l *Lane) Report() Report {
	r := C.lane_report(l.c)
	return Report{
		FramesIn: uint64(r.frames_in), BytesIn: uint64(r.bytes_in), FramesOut: uint64(r.frames_out), BytesOut: uint64(r.bytes_out),
		QueueDropped: uint64(r.queue_dropped), OversizeDropped: uint64(r.oversize_dropped), InFlight: uint64(r.in_flight),
		MaxQueueBytes: uint64(r.max_queue_bytes), MaxQueuePackets: uint64(r.max_queue_packets),
		Dropped: uint64(r.dropped), Conserved: bool(r.conserved),
	}
}

// Times is a hash of when each datagram was sent and when it left, and of its length.
func (l *Lane) Times() uint64 { return uint64(C.lane_times(l.c)) }

// Arrivals are when the packets that Verdicts has left the link, 8 bytes each: in ns since the first. Nil: losses do not follow from it.
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
