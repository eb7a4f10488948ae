// One direction of the emulated link in virtual time, with the losses behind it: what a simulator sends
// datagrams through. The link is topologies/wire/direction.c and the losses are dropper/losses.h, so a packet
// leaves at the same instant, with the same verdict, as over the emulated link.
//
// Times are nanoseconds of the simulator's clock and never decrease. Nothing here reads a clock or waits.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "../../topologies/wire/jitter.h"
#include "../../topologies/wire/schedule.h"

// What a UDP datagram over IPv4 has more on an Ethernet link: 20 + 8 + 14 bytes. Rate, queue and limit count
// it.
#define LANE_OVERHEAD 42
// The largest payload of a datagram over a link with an MTU of 1500 bytes; a longer one is dropped and
// counted.
#define LANE_PAYLOAD_MAX 1472
// Verdicts that are recorded, as many as the dropper records.
#define LANE_RECORDED (1u << 20)
#define LANE_NEVER UINT64_MAX

struct lane_settings {
    uint64_t rate_bps; // > 0
    uint64_t delay_ns;
    // The queue's limit: exactly one of the three is not 0; queue_ns needs a schedule.
    uint64_t queue_bytes;
    uint64_t queue_packets;
    uint64_t queue_ns;
    // How rate and delay change from lane_start() on; count 0: they do not. The steps are copied.
    struct schedule schedule;
    bool codel; // besides, CoDel (RFC 8289) drops frames that have waited too long
    // The loss model: thresholds, see dropper/losses.h; all 0 for none.
    uint64_t seed, loss_good, loss_bad, good_to_bad, bad_to_good;
    // Or, where `pattern` is not NULL, bit n % 8 of byte n / 8 says whether packet n is lost; past its end
    // all pass, or it begins again. It is copied.
    const uint8_t *pattern;
    uint64_t pattern_packets;
    bool pattern_repeats;
    // Or losses follow from when a packet leaves the link, counted from the first. With slot_ns, the pattern
    // is one of slots of time. With good_us and bad_us, the states of the model last for times of these
    // means, and its transitions are 0.
    uint64_t slot_ns, good_us, bad_us;
    struct jitter jitter; // of the delay; law 0 for none
    bool reorder;         // datagrams may overtake: n is their place in the order in which they leave
};

struct lane_report {
    uint64_t frames_in, bytes_in, frames_out, bytes_out;
    uint64_t queue_dropped, oversize_dropped, in_flight;
    uint64_t max_queue_bytes, max_queue_packets;
    uint64_t dropped; // lost behind the link; it has judged all of frames_out
    bool conserved;
};

// What left the lane.
struct lane_exit {
    uint64_t at_ns;  // when it was due, not when it was asked for
    uint64_t tag;    // as it was sent
    uint32_t length; // of the payload
    bool lost;
};

struct lane;

// NULL when the memory is exhausted. It is made once and used for one trial after another.
struct lane *lane_new(void);
void lane_free(struct lane *lane);

// Begins a trial: all that was in the lane, counted or recorded is gone. False, and nothing is changed, when
// the settings are not allowed or the memory is exhausted.
bool lane_begin(struct lane *lane, const struct lane_settings *settings);

// The client starts at now_ns, since when the schedule counts.
void lane_start(struct lane *lane, uint64_t now_ns);

// The same, and the lane is out from the one time until the other: what is sent then is dropped, and what is
// inside comes out. Until the next lane_begin(), which ends it.
void lane_start_outage(struct lane *lane, uint64_t now_ns, uint64_t from_ns, uint64_t to_ns);

// A datagram is sent at now_ns; the tag, such as who shall get it, travels with it. False when the link drops
// it at once; CoDel may drop it later.
bool lane_send(struct lane *lane, const uint8_t *payload, uint32_t length, uint64_t tag, uint64_t now_ns);

// When the next datagram leaves, or LANE_NEVER.
uint64_t lane_next_exit(const struct lane *lane);

// The next datagram that has left the link at now_ns and its verdict; its payload, of at most
// LANE_PAYLOAD_MAX bytes, is written also when it is lost. False when none has.
bool lane_receive(struct lane *lane, uint64_t now_ns, uint8_t *payload, struct lane_exit *exit);

struct lane_report lane_report(const struct lane *lane);

// A hash of when each datagram was sent and when it left the link, in nanoseconds, and of its length: the
// same for datagrams of the same lengths at the same times.
uint64_t lane_times(const struct lane *lane);

// How many datagrams were sent while the lane was out; they are in frames_in of the report, too.
uint64_t lane_outage_dropped(const struct lane *lane);

// When each of the same packets left the link, in ns since the first; NULL if their losses do not follow from
// it.
const uint64_t *lane_arrivals(const struct lane *lane);

// The verdicts of the first `packets` (at most LANE_RECORDED) that left the link: bit n % 8 of byte n / 8 is
// set when packet n was lost. It is the lane's until the next call of a function that changes it.
const uint8_t *lane_verdicts(const struct lane *lane, uint64_t *packets);
