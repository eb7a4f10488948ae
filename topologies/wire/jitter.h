// Noise of the delay: an additional delay of each frame, by a law and a seed. It is a function of the
// frame's number, in whole numbers, so that every link with the seed has the same noise on every machine.
//
// All laws have the mean mean_ns, and are never below 0:
//   uniform: from 0 to twice the mean.
//   normal: a standard deviation of half the mean, cut at two of them: from 0 to twice the mean.
//   pareto: shifted to begin at 0, with the shape 3, cut where one in a thousand would be beyond: up to 18.5
//     times the mean.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum jitter_law { JITTER_NONE, JITTER_UNIFORM, JITTER_NORMAL, JITTER_PARETO };

#define JITTER_MOST_MEAN_NS 10000000000ull

struct jitter {
    enum jitter_law law;
    uint64_t mean_ns; // 0 for none
    uint64_t seed;
};

// Whether there is such a law, and its mean is not too large.
bool jitter_is_right(const struct jitter *jitter);

// 32 bits that decide about frame n.
uint64_t jitter_draw(uint64_t seed, uint64_t n);

// The noise of frame n.
uint64_t jitter_ns(const struct jitter *jitter, uint64_t n);
