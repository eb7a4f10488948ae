// Frames, lists of them, and the pool that they come from and return to. The pool grows by whole chunks when
// it is empty and never shrinks, so that a link in steady state allocates nothing.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The effects of the link on a frame, besides carrying it.
enum {
    EFFECT_MARK = 1,         // CE, which its carrier writes
    EFFECT_COPY = 2,         // one leaves before it
    EFFECT_LEAVES_AGAIN = 4, // what left is its copy, so that it is not returned yet
    EFFECT_CORRUPTION = 8,
    EFFECT_FLIPPED = 16, // its carrier has changed a bit of it
    EFFECT_CROSS = 32,   // the direction's own, which nobody hands in or out
};

// The codepoints of RFC 3168 and 8311, as they stand in headers.
enum ecn { ECN_NOT_CAPABLE, ECN_ECT_1, ECN_ECT_0, ECN_CE };

struct frame {
    struct frame *next;           // of the list that it is in
    struct frame *behind;         // the frame that is sent after it
    struct frame *child, *parent; // in the heap of those that overtake
    uint64_t number;              // in the order of sending
    uint64_t arrived_ns;          // where CoDel judges how long it waits
    uint64_t serialized_ns;       // when its last bit has left the transmitter
    uint64_t exit_ns;             // when it reaches the far end
    uint32_t length;              // bytes, Ethernet header included
    enum ecn ecn;                 // as it came; its carrier says it
    uint32_t flow;                // the same for all frames of a flow; its carrier says it
    uint32_t effects;             // a sum of these; 0 in the pool
    uint8_t bytes[];
};

// Whether the frame can be marked; then it is.
static inline bool frame_mark(struct frame *frame) {
    if (frame->ecn != ECN_NOT_CAPABLE && frame->ecn != ECN_CE)
        frame->effects |= EFFECT_MARK;
    return frame->ecn != ECN_NOT_CAPABLE;
}

// Whether nobody can read the frame that has left.
static inline bool frame_is_unreadable(const struct frame *frame) {
    return frame->effects & EFFECT_CORRUPTION;
}

struct frames {
    struct frame *head, *tail;
};

void frames_append(struct frames *frames, struct frame *frame);

// The first, or NULL.
struct frame *frames_take(struct frames *frames);

// Counted one by one.
uint64_t frames_count(const struct frames *frames);

struct frame_pool {
    struct frame *free;
    struct frame_chunk *chunks;
    uint32_t frame_capacity; // bytes that a frame can hold
};

void frame_pool_init(struct frame_pool *pool, uint32_t frame_capacity);

// False when the memory is exhausted.
bool frame_pool_grow(struct frame_pool *pool);

// NULL when the pool is empty and the memory exhausted.
struct frame *frame_pool_take(struct frame_pool *pool);

// A frame that leaves again stays where it is.
void frame_pool_return(struct frame_pool *pool, struct frame *frame);

void frame_pool_free(struct frame_pool *pool);
