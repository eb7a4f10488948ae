// CoDel, the controlled delay queue discipline of RFC 8289, with its target of 5 ms and interval of 100 ms:
// which frames are dropped or marked at the head of a queue. Times are nanoseconds.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define CODEL_TARGET_NS 5000000ull
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

// The transmitter is free at now_ns, and the head of the queue has waited for sojourn_ns before
// `behind_bytes` others. Whether it is dropped; then the next head is asked for, at the same time.
bool codel_drops_head(struct codel *codel, uint64_t now_ns, uint64_t sojourn_ns, uint64_t behind_bytes,
                      uint32_t max_frame_size);

// The head is marked in the place of being dropped: it is sent, and no other is asked for.
void codel_marks_head(struct codel *codel, uint64_t now_ns);

// There was no head to ask for: the last one was dropped, too.
void codel_meets_empty_queue(struct codel *codel, uint64_t now_ns);
