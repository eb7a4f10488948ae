// A token bucket: bytes that may pass at once, refilled at a rate. A policer drops what it does not hold, and
// a shaper sends at once what it holds. In whole numbers, without a remainder: it counts bits and nanoseconds
// together.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define BUCKET_MOST_BYTES 1000000000ull

struct bucket {
    uint64_t rate_bps;
    uint64_t level, capacity; // in units of a bit a second for a nanosecond: a byte has 8 * 10^9
    uint64_t filled_ns;       // the time of `level`
};

#define BUCKET_BYTE 8000000000ull

// It is full at the beginning.
static inline struct bucket bucket_of(uint64_t rate_bps, uint64_t bytes) {
    return (struct bucket){
        .rate_bps = rate_bps, .level = bytes * BUCKET_BYTE, .capacity = bytes * BUCKET_BYTE};
}

// Time passes from the one instant until the other, which is no sooner, and fills the bucket.
static inline void bucket_fill(struct bucket *bucket, uint64_t from_ns, uint64_t to_ns) {
    unsigned __int128 level = bucket->level + (unsigned __int128)(to_ns - from_ns) * bucket->rate_bps;
    bucket->level = level < bucket->capacity ? (uint64_t)level : bucket->capacity;
}

// Whether the bucket holds a frame at a time that never decreases; then it is taken out.
static inline bool bucket_takes(struct bucket *bucket, uint32_t bytes, uint64_t now_ns) {
    bucket_fill(bucket, bucket->filled_ns, now_ns);
    bucket->filled_ns = now_ns;
    if (bucket->level < bytes * BUCKET_BYTE)
        return false;
    bucket->level -= bytes * BUCKET_BYTE;
    return true;
}

// Takes so much out of the bucket, or all that it holds.
static inline uint64_t bucket_take_up_to(struct bucket *bucket, uint64_t most) {
    uint64_t taken = most < bucket->level ? most : bucket->level;
    bucket->level -= taken;
    return taken;
}
