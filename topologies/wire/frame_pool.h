// Frames, lists of them, and the pool that they come from and return to. The pool grows by whole chunks when
// it is empty and never shrinks, so that a link in steady state allocates nothing.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// FLIPPED: its carrier has changed a bit of it.
enum corruption { CORRUPTION_NONE, CORRUPTION_DUE, CORRUPTION_FLIPPED };

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
    bool is_duplicated;           // a copy leaves before it
    bool is_cross;                // the direction's own, which nobody hands in or out
    enum ecn ecn;                 // as it came; its carrier says it
    bool is_marked;               // the link sets CE, which its carrier writes
    enum corruption corruption;
    bool leaves_again; // what left is its copy, so that it is not returned yet
    uint8_t bytes[];
};

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
