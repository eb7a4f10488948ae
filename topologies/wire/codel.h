// CoDel, the controlled delay queue discipline of RFC 8289, with its interval of 100 ms: which frames are
// dropped or marked at the head of a queue. Times are nanoseconds.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "frame_pool.h"

#define CODEL_TARGET_NS 5000000ull // where no other is given
#define CODEL_INTERVAL_NS 100000000ull

// The event after which the head of the queue comes.
enum codel_turn { TURN_BEGINS, TURN_FIRST_DROP, TURN_NEXT_DROP };

struct codel {
    uint64_t
        first_above_ns; // when the waiting will have been too long for an interval; 0: it is not too long
    uint64_t drop_next_ns;
    uint64_t drops, last_drops; // of this dropping state, and with how many the last one began
    bool dropping;
    enum codel_turn turn;
};

// Frames that wait, in the order of arrival.
struct codel_queue {
    struct codel codel;
    struct frames frames;
    uint64_t bytes;
};

void codel_put(struct codel_queue *queue, struct frame *frame);

struct codel_law {
    uint64_t target_ns;
    uint32_t max_frame_size; // with no more bytes behind it, a frame has not waited too long
    bool marks;              // what can be marked is marked and sent, in the place of being dropped
};

// The frame that is sent at now_ns, when the transmitter is free, or NULL. Frames that are dropped before
// it are appended to `dropped`.
struct frame *codel_take(struct codel_queue *queue, uint64_t now_ns, const struct codel_law *law,
                         struct frames *dropped);
