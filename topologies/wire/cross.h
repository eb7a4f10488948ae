// Cross traffic: full frames of others that share the queue and the transmitter of a direction, and go
// somewhere else behind it. They come at a constant rate for a while, then not at all, by turns: stay n, off
// for even n, on for odd n, has any length from 0 to twice its mean, by draw n of the seed.
#pragma once

#include <stdint.h>

#include "jitter.h"

#define CROSS_FRAME_BYTES 1514
#define CROSS_MOST_MEAN_NS 1000000000000ull
#define CROSS_FLOW UINT32_MAX // all of it is one flow

struct cross {
    uint64_t on_ns, off_ns; // when its present time begins and ends; both 0: it has not begun
    uint64_t stays;         // that were drawn
    uint64_t sent;          // since on_ns
    uint64_t frames_in, dropped, bytes_in;
    uint64_t waiting; // for their turn
};

struct cross_settings {
    uint64_t bps; // 0: none
    uint64_t on_mean_ns, off_mean_ns, seed;
};

static inline uint64_t cross_stay(struct cross *cross, uint64_t mean_ns, uint64_t seed) {
    uint64_t draw = jitter_draw(seed, cross->stays++);
    return (uint64_t)((unsigned __int128)(2 * mean_ns) * draw >> 32);
}

// When its next frame comes, if it began at started_ns.
static inline uint64_t cross_next(struct cross *cross, const struct cross_settings *settings,
                                  uint64_t started_ns) {
    if (!cross->stays)
        cross->on_ns = cross->off_ns = started_ns;
    for (;;) {
        unsigned __int128 bits = (unsigned __int128)cross->sent * CROSS_FRAME_BYTES * 8;
        uint64_t next_ns = cross->on_ns + (uint64_t)(bits * 1000000000 / settings->bps);
        if (next_ns < cross->off_ns)
            return next_ns;
        cross->on_ns = cross->off_ns + cross_stay(cross, settings->off_mean_ns, settings->seed);
        cross->off_ns = cross->on_ns + cross_stay(cross, settings->on_mean_ns, settings->seed);
        cross->sent = 0;
    }
}
