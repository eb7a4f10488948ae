// One direction of the link, without clock, system calls or memory of its own:
//
//   arrival → MTU → outage → policer → droptail test → serialization at the rate
//     → propagation in an unbounded delay line → exit
//
// A frame that is longer than the MTU is dropped. A link that is out takes nothing: what arrives then is
// dropped, and what is inside still comes out. A policer drops what is beyond its rate and its burst.
//
// A shaper that has been idle has credit: so many bytes are sent at once, and the others at the rate.
//
// With CoDel (RFC 8289), frames that have waited too long are dropped besides, when their turn to be sent
// comes. With FQ-CoDel (RFC 8290) each flow has such a queue, and whose turn comes is chosen among flows; a
// full queue takes what comes and drops from the longest. With DualPI2 (RFC 9332) there are two queues. The
// carrier of frames says to which flow one belongs.
//
// With PIE (RFC 8033), frames are dropped besides when they come, by draws of their numbers in the order of
// arrival.
//
// With ECN, managed queues mark frames that can be marked in the place of dropping them, and a threshold
// marks those that waited for as long before they were sent. The carrier of frames says which can be marked,
// and writes the mark.
//
// Rate and delay may follow a schedule, from direction_start() on. A frame has the delay of when its last bit
// is sent, and with jitter the noise of its number besides: 0, 1, … in the order in which frames are sent, so
// that one that the queue drops has none. No frame overtakes another, unless the direction reorders: then
// each leaves when its own delay says.
//
// Draws of 32 bits decide about a frame by its number, each with a seed of its own: whether it is corrupted,
// which is its carrier's to do, whether it is duplicated, and whether it overtakes those before it, in the
// place of its noise. A frame that is duplicated leaves twice, at the same time, and both are corrupted or
// neither. The link counts the copy as one more frame in.
//
// Cross traffic has frames of the direction's own, from direction_start() on: they are queued, sent and
// dropped as others, but have no number and no noise, and are counted apart.
//
// Times are integer nanoseconds of one monotonic clock and travel with the frame: when a frame leaves depends
// on when it arrived and on the frames before it, never on when these functions are called to hand it out.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "bucket.h"
#include "codel.h"
#include "cross.h"
#include "delay_line.h"
#include "dualpi2.h"
#include "fq_codel.h"
#include "frame_pool.h"
#include "jitter.h"
#include "overtaking.h"
#include "pie.h"
#include "schedule.h"

#define NEVER UINT64_MAX

enum queue { QUEUE_DROPTAIL, QUEUE_CODEL, QUEUE_PIE, QUEUE_FQ_CODEL, QUEUE_DUALPI2 };

// A frame's length, everywhere, is its bytes with the Ethernet header, without preamble and FCS.
struct direction_settings {
    uint64_t rate_bps; // > 0
    uint64_t delay_ns; // propagation
    // The droptail limit: exactly one of the two is not 0, or queue_ns with a schedule.
    uint64_t queue_bytes;
    uint64_t queue_packets;
    uint32_t max_frame_size; // longer frames are dropped and counted
    enum queue queue;
    // It is out from the one until the other, counted from direction_start(); both 0: never.
    uint64_t outage_from_ns, outage_to_ns;
    struct schedule
        schedule;      // its steps are the caller's; where it has ended, rate and delay are those above
    uint64_t queue_ns; // what the present rate sends meanwhile, but never less than LEAST_QUEUE_BYTES
    struct jitter jitter;
    bool reorder;
    // A frame leaves twice if its draw of 32 bits is below the threshold.
    uint64_t duplicate_threshold, duplicate_seed;
    uint64_t mtu_bytes;                        // without the Ethernet header; 0: that of max_frame_size
    uint64_t policer_bps, policer_burst_bytes; // both 0: none
    uint64_t shaper_burst_bytes;               // what an idle transmitter sends at once; not with a schedule
    uint64_t corrupt_threshold, corrupt_seed;  // as those of duplicates
    bool ecn;                                  // queues mark what they may, in the place of dropping it
    uint64_t ecn_threshold_ns;                 // and whatever has waited for so long; 0: no such threshold
    uint64_t pie_seed;
    uint64_t overtake_threshold, overtake_seed, overtake_by;
    struct cross_settings cross;
    bool mtu_icmp;            // the carrier tells senders of what is longer than mtu_bytes, by an ICMP
    uint64_t codel_target_ns; // 0: CODEL_TARGET_NS
};

#define LEAST_QUEUE_BYTES 15140 // ten full frames

enum fate { FATE_INVALID, FATE_ACCEPTED, FATE_QUEUE_FULL, FATE_OVERSIZE, FATE_OUTAGE, FATE_POLICED };

struct direction {
    struct direction_settings settings;
    uint64_t started_ns; // or NEVER

    struct delay_line line; // frames whose exit is known
    // Those of them that have not been serialized, one behind the other.
    struct frame *queue, *queue_tail;
    // Frames whose turn has not come, where the queue chooses then; else none.
    uint64_t waiting, last_waiting_ns; // how many, and when the last one came
    struct pie pie;
    uint64_t judged;       // by PIE
    struct frames dropped; // by the queue after they were accepted, until direction_dropped() has them
    // All that have not been serialized.
    uint64_t queued_bytes, queued_packets;

    uint64_t transmitter_free_ns; // when the last accepted bit has been sent
    struct bucket policer, credit;
    bool draws_effects; // of its frames
    struct cross cross;
    struct frame_pool *pool; // of the frames of cross traffic
    uint64_t remainder;      // what integer nanoseconds left over of it, in units of 1/rate_bps ns
    struct schedule_sender sender;
    bool is_scheduled;     // `sender` is where the transmitter is
    uint64_t last_exit_ns; // of those whose exit is known
    uint64_t sent;         // frames
    uint64_t least_delay_ns;

    uint64_t frames_in, bytes_in, frames_out, bytes_out;
    uint64_t queue_dropped; // by the limit, and by what manages the queue
    uint64_t oversize_dropped;
    uint64_t outage_dropped; // arrived while the link was out
    uint64_t policer_dropped;
    uint64_t corrupted; // of frames_out
    uint64_t marked;    // of frames_out, by this link
    uint64_t icmp_sent; // by the carrier, about frames that were longer than the MTU
    uint64_t max_queue_bytes, max_queue_packets;

    // Large, and only touched where a link has it.
    struct overtaking overtaking;
    union {
        struct codel_queue codel;
        struct dualpi2 dualpi2;
        struct fq_codel fq_codel;
    } managed; // by settings.queue
};

// A counter of an effect that most links lack, and its name in reports.
struct direction_counter {
    const char *name;
    uint64_t (*count)(const struct direction *direction);
};

// The last one has no name.
extern const struct direction_counter DIRECTION_COUNTERS[];

void direction_init(struct direction *direction, const struct direction_settings *settings);

// Where cross traffic has its frames; a direction without any needs no pool.
void direction_lend(struct direction *direction, struct frame_pool *pool);

// No more of it comes, and what is in the transmitter goes back to the pool: only before all frames are taken
// out, and the direction is begun anew.
void direction_end_cross(struct direction *direction);

// Outages and the schedule are counted from now_ns on. Until it is called, and with NEVER, there are none.
void direction_start(struct direction *direction, uint64_t now_ns);

// A frame of frame->length bytes arrives at now_ns, which never decreases. If it is accepted, it belongs to
// the direction until it exits; otherwise it still belongs to the caller.
enum fate direction_arrive(struct direction *direction, struct frame *frame, uint64_t now_ns);

// When the next frame is due, or NEVER. With a managed queue where frames may overtake, or beside cross
// traffic, it may be sooner, and nothing exits then.
uint64_t direction_next_exit(const struct direction *direction);

// The next frame that is due at now_ns, or NULL. It belongs to the caller until frame_pool_return().
struct frame *direction_exit(struct direction *direction, uint64_t now_ns);

// The next frame that the queue has dropped after it was accepted, or NULL; to be asked for after each
// arrival and exit. It belongs to the caller from then on.
struct frame *direction_dropped(struct direction *direction);

// Frames inside, without those of cross traffic, counted one by one.
uint64_t direction_in_flight(const struct direction *direction);

// Whether in = out + dropped + in flight.
bool direction_conserves(const struct direction *direction);
