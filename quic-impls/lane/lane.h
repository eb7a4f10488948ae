// One direction of the emulated link in virtual time, with the losses behind it: a simulator sends
// datagrams through it. The link is topologies/wire/direction.c and the losses are dropper/losses.h, so
// a packet leaves at the same instant, with the same verdict, as over the emulated link.
//
// Times are nanoseconds of the simulator's clock and never decrease. Nothing here reads a clock or waits.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// Bytes of a UDP datagram over IPv4 on an Ethernet link, besides its payload: 20 + 8 + 14; over IPv6, 20
// more. Rate, queue and limit count them.
#define LANE_OVERHEAD 42
#define LANE_OVERHEAD_IPV6 62
// The largest payload of a datagram over IPv4 and a link with an MTU of 1500 bytes, over IPv6 20 less; a
// longer one is dropped and counted.
#define LANE_PAYLOAD_MAX 1472
// Verdicts that are recorded, as many as the dropper records.
#define LANE_RECORDED (1u << 20)
#define LANE_NEVER UINT64_MAX
// Room for the text of lane_counted().
#define LANE_COUNTED 512

struct lane_report {
    uint64_t frames_in, bytes_in, frames_out, bytes_out;
    uint64_t queue_dropped, oversize_dropped, in_flight;
    uint64_t outage_dropped; // sent while it was out
    uint64_t max_queue_bytes, max_queue_packets;
    uint64_t dropped; // lost behind the link; it has judged all of frames_out but the shorter ones
    bool conserved;
};

// A datagram that has left the lane.
struct lane_exit {
    uint64_t at_ns;  // when it was due, not when it was asked for
    uint64_t tag;    // as it was sent
    uint32_t length; // of the payload
    bool lost;       // nobody receives it: it was dropped behind the link, or unreadable
    uint8_t ecn;     // its codepoint, which the link may have set to CE (3)
};

struct lane;

// NULL when the memory is exhausted. It is made once and used for one trial after another.
struct lane *lane_new(void);
void lane_free(struct lane *lane);

// Begins a trial over the link that a text describes, with its losses: lines of topologies/wire/written.c and
// of dropper/written_losses.c, and `family ipv6` where datagrams have headers of IPv6. All that was in the
// lane, counted or recorded is gone. NULL; or, and nothing is changed, why the text is refused: one line, the
// lane's until the next call.
const char *lane_begin(struct lane *lane, const char *text);

// The client starts at now_ns, since when a schedule and an outage count.
void lane_start(struct lane *lane, uint64_t now_ns);

// A datagram is sent at now_ns with an ECN codepoint, from 0 to 3 as in IP headers; the tag, such as who
// shall get it, travels with it; those of one tag are a flow. False when the link drops it at once; CoDel may
// drop it later.
bool lane_send(struct lane *lane, const uint8_t *payload, uint32_t length, uint64_t tag, uint8_t ecn,
               uint64_t now_ns);

// The time at which the next datagram leaves, or LANE_NEVER.
uint64_t lane_next_exit(const struct lane *lane);

// The next datagram that has left the link at now_ns and its verdict; its payload, of at most
// LANE_PAYLOAD_MAX bytes, is written also when it is lost. False when none has.
bool lane_receive(struct lane *lane, uint64_t now_ns, uint8_t *payload, struct lane_exit *exit);

struct lane_report lane_report(const struct lane *lane);

// The counters of effects that most links lack, lines "name value", of those that are not 0: as
// topologies/wire/direction.c names them, and `shorter`, packets that passed as only longer ones are judged.
void lane_counted(const struct lane *lane, char text[LANE_COUNTED]);

// A hash of when each datagram was sent and when it left the link, in nanoseconds, and of its length: the
// same for datagrams of the same lengths at the same times.
uint64_t lane_times(const struct lane *lane);

// Whether a transfer has filled the link, so that another may begin beside it: the bytes that have left
// it, lost or not, are at least full_share of what its rate carries, over the last window_ns. It is
// judged by readings: begin, and then ask at intervals. Before the start, as here, a link has the rate
// of its text.
void lane_begin_filling(struct lane *lane, double full_share, uint64_t window_ns);
bool lane_is_full(struct lane *lane, uint64_t now_ns);

// The times at which the packets of lane_verdicts() left the link, in ns since the first; NULL if their
// losses do not follow from them.
const uint64_t *lane_arrivals(const struct lane *lane);

// The verdicts of the first `packets` (at most LANE_RECORDED) that left the link: bit n % 8 of byte n / 8 is
// set when packet n was lost. It is the lane's until the next call of a function that changes it.
const uint8_t *lane_verdicts(const struct lane *lane, uint64_t *packets);
