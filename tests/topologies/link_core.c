// Runs a link on given arrivals, at given times of looking: the clock is the test's. As in the wire, both
// directions take their frames from one pool.
#include <stdlib.h>
#include <string.h>

#include "../../topologies/wire/direction.h"
#include "../../topologies/wire/headers.h"
#include "../../topologies/wire/lateness.h"

struct outcome {
    uint64_t frames_in, frames_out, queue_dropped, oversize_dropped, outage_dropped, policer_dropped,
        corrupted, marked, in_flight;
    uint64_t max_queue_bytes, max_queue_packets;
    uint64_t cross_frames, cross_dropped;
    uint32_t conserved;
};

static void forget_dropped(struct direction *direction, struct frame_pool *pool) {
    for (struct frame *frame; (frame = direction_dropped(direction));)
        frame_pool_return(pool, frame);
}

static void hand_out(struct direction *direction, struct frame_pool *pool, uint64_t now_ns, uint64_t *left,
                     uint64_t *exits, uint8_t *ecn) {
    for (struct frame *frame; (frame = direction_exit(direction, now_ns)); frame_pool_return(pool, frame)) {
        uint64_t index; // the frame's content
        memcpy(&index, frame->bytes, sizeof index);
        exits[index] = frame->exit_ns;
        if (ecn && frame->effects & EFFECT_MARK)
            ecn[index] = ECN_CE;
        left[index] = direction->frames_out; // 1, 2, …: the order in which frames left
    }
    forget_dropped(direction, pool);
}

static struct outcome outcome_of(const struct direction *direction) {
    return (struct outcome){
        .frames_in = direction->frames_in,
        .frames_out = direction->frames_out,
        .queue_dropped = direction->queue_dropped,
        .oversize_dropped = direction->oversize_dropped,
        .outage_dropped = direction->outage_dropped,
        .policer_dropped = direction->policer_dropped,
        .corrupted = direction->corrupted,
        .marked = direction->marked,
        .in_flight = direction_in_flight(direction),
        .max_queue_bytes = direction->max_queue_bytes,
        .max_queue_packets = direction->max_queue_packets,
        .cross_frames = direction->cross.frames_in,
        .cross_dropped = direction->cross.dropped,
        .conserved = direction_conserves(direction),
    };
}

// The directions are started at start_ns. Frame i arrives at arrivals[i] in direction ways[i], 0 or 1; the
// link is looked at each looks[j] ≤ the next arrival, then at end_ns. fates[i], exits[i] (when it was due),
// left[i] (its place in the order of its direction, or 0) and the outcome of each direction are written, and
// into ecn[i] the mark of frame i, whose codepoint was there; NULL: no frame can be marked. Frame i is of
// flow flows[i]; NULL: all are of one.
void run_link(const struct direction_settings settings[2], uint64_t start_ns, size_t frames,
              const uint8_t *ways, const uint64_t *arrivals, const uint32_t *lengths, size_t looks,
              const uint64_t *look_times, uint64_t end_ns, uint32_t *fates, uint64_t *exits, uint64_t *left,
              struct outcome outcomes[2], uint8_t *ecn, const uint32_t *flows) {
    struct direction directions[2];
    struct frame_pool pool;
    for (int way = 0; way < 2; way++) {
        direction_init(&directions[way], &settings[way]);
        direction_start(&directions[way], start_ns);
    }
    frame_pool_init(&pool, sizeof(uint64_t));
    for (int way = 0; way < 2; way++)
        direction_lend(&directions[way], &pool);
    size_t look = 0;
    for (size_t i = 0; i < frames; i++) {
        for (; look < looks && look_times[look] <= arrivals[i]; look++)
            for (int way = 0; way < 2; way++)
                hand_out(&directions[way], &pool, look_times[look], left, exits, ecn);
        struct frame *frame = frame_pool_take(&pool);
        if (!frame)
            abort();
        frame->length = lengths[i];
        frame->ecn = ecn ? ecn[i] : ECN_NOT_CAPABLE;
        frame->flow = flows ? flows[i] : 0;
        uint64_t index = i;
        memcpy(frame->bytes, &index, sizeof index);
        fates[i] = direction_arrive(&directions[ways[i]], frame, arrivals[i]);
        if (fates[i] != FATE_ACCEPTED)
            frame_pool_return(&pool, frame);
        forget_dropped(&directions[ways[i]], &pool);
    }
    for (int way = 0; way < 2; way++) {
        hand_out(&directions[way], &pool, end_ns, left, exits, ecn);
        outcomes[way] = outcome_of(&directions[way]);
    }
    frame_pool_free(&pool);
}

// How many times a pool must grow to hand out `held` frames, `rounds` times over.
uint64_t pool_growth(uint64_t held, uint64_t rounds) {
    struct frame_pool pool;
    frame_pool_init(&pool, 1514);
    struct frame **frames = calloc(held, sizeof *frames);
    uint64_t growth = 0;
    for (uint64_t round = 0; round < rounds; round++) {
        for (uint64_t i = 0; i < held; i++) {
            growth += !pool.free;
            frames[i] = frame_pool_take(&pool);
        }
        for (uint64_t i = 0; i < held; i++)
            frame_pool_return(&pool, frames[i]);
    }
    free(frames);
    frame_pool_free(&pool);
    return growth;
}

uint64_t quantile_of(size_t count, const uint64_t *durations_ns, double q) {
    struct lateness lateness = {0};
    for (size_t i = 0; i < count; i++)
        lateness_record(&lateness, durations_ns[i]);
    return lateness_quantile(&lateness, q);
}

// How long anything was overdue that was due at due_ns[i] and came at done_ns[i].
uint64_t overdue_of(size_t count, const uint64_t *due_ns, const uint64_t *done_ns) {
    struct overdue overdue = {0};
    for (size_t i = 0; i < count; i++)
        overdue_add(&overdue, due_ns[i], done_ns[i]);
    return overdue.total_ns;
}

static struct frame *frame_of(const uint8_t *bytes, uint32_t length) {
    struct frame *frame = calloc(1, sizeof *frame + length);
    if (!frame)
        abort();
    frame->length = length;
    memcpy(frame->bytes, bytes, length);
    return frame;
}

// A frame with CE written into it, and its codepoint before.
uint32_t with_ce(uint8_t *bytes, uint32_t length) {
    struct frame *frame = frame_of(bytes, length);
    uint32_t ecn = ecn_of(frame);
    write_ce(frame);
    memcpy(bytes, frame->bytes, length);
    free(frame);
    return ecn;
}

// A frame whose bit has flipped that belongs to a draw.
void with_flip(uint8_t *bytes, uint32_t length, uint64_t draw) {
    struct frame *frame = frame_of(bytes, length);
    corrupt(frame, draw);
    memcpy(bytes, frame->bytes, length);
    free(frame);
}

uint32_t flow_of_bytes(const uint8_t *bytes, uint32_t length) {
    struct frame *frame = frame_of(bytes, length);
    uint32_t flow = flow_of(frame);
    free(frame);
    return flow;
}

int64_t pie_step_of(int64_t probability, int64_t delay_ns, int64_t last_delay_ns) {
    return pie_step(probability, delay_ns, last_delay_ns);
}
