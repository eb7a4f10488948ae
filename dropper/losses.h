/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause OR GPL-2.0-only */
/*
 * The loss models as functions without state: the one place in which a draw is made and judged, for the BPF
 * program and for simulators. Their contract is in README.md; the oracle, model.py, shares no line with it.
 *
 * A probability q is the threshold round(q * 2^32), halves rounded to even, in 64 bits so that q = 1 is
 * exact: an event happens iff a 32-bit draw is smaller than its threshold.
 */
#ifndef LOSSES_H
#define LOSSES_H

#include <stdbool.h>

typedef unsigned long long losses_u64; /* a BPF program has no <stdint.h> */

#define LOSSES_INLINE static inline __attribute__((always_inline))

/* The longest record of verdicts and the longest pattern: 2 MiB each. A bit of a word is a verdict. */
#define LOSSES_PACKETS_MAX (1u << 24)
#define LOSSES_PER_WORD 64
/* The largest burst_max. */
#define LOSSES_BURST_MAX 10000u
/* The largest only_longer_than: nothing is longer. */
#define LOSSES_LONGEST_PACKET 65535u

enum losses_model {
    LOSSES_MODEL_INVALID = 0,
    LOSSES_MODEL_UNIFORM,
    LOSSES_MODEL_GILBERT_ELLIOTT,
    LOSSES_MODEL_PATTERN,
    LOSSES_MODEL_GE_TIME,
    LOSSES_MODEL_SLOTS,
    LOSSES_MODEL_BEGINNING,
};

/* Losses of these follow from when a packet arrives, and not from its number. */
LOSSES_INLINE bool losses_is_clocked(unsigned model) {
    return model == LOSSES_MODEL_GE_TIME || model == LOSSES_MODEL_SLOTS;
}

/* A Gilbert-Elliott chain that begins in the good state. A chain that never leaves it is the uniform model.
 */
struct losses {
    losses_u64 seed;
    losses_u64 loss_good; /* threshold of a loss in the good state; of every loss for uniform */
    losses_u64 loss_bad;
    losses_u64 good_to_bad;
    losses_u64 bad_to_good;
    losses_u64 length;    /* of the beginning in which packets are lost; 0: all along */
    losses_u64 burst_max; /* the most packets that are lost in a row; 0: any number */
    /* Only packets that are longer count; the others pass, and have no number. Bytes of IP; 0: all count. */
    losses_u64 only_longer_than;
};

/* Whether a packet of so many bytes of IP has a number, and may be lost. */
LOSSES_INLINE bool losses_counts(const struct losses *losses, losses_u64 ip_bytes) {
    return ip_bytes > losses->only_longer_than;
}

/* Draw j, 0 or 1, of packet n: the upper half of SplitMix64's output function (Steele, Lea, Flood, OOPSLA
 * 2014) at a place of its sequence. */
LOSSES_INLINE losses_u64 losses_draw(losses_u64 seed, losses_u64 n, losses_u64 j) {
    losses_u64 z = seed + (2 * n + j + 1) * 0x9E3779B97F4A7C15ull;

    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return (z ^ (z >> 31)) >> 32;
}

/* Whether packet n is lost when the chain is in this state before it. */
LOSSES_INLINE bool losses_lose(const struct losses *losses, losses_u64 n, bool bad) {
    if (losses->length && n >= losses->length)
        return false;
    return losses_draw(losses->seed, n, 0) < (bad ? losses->loss_bad : losses->loss_good);
}

/* The same where so many before it were lost in a row: behind burst_max of them, it passes. */
LOSSES_INLINE bool losses_lose_behind(const struct losses *losses, losses_u64 n, bool bad, losses_u64 burst) {
    if (losses->burst_max && burst >= losses->burst_max)
        return false;
    return losses_lose(losses, n, bad);
}

/* Whether the chain is in the bad state after packet n. */
LOSSES_INLINE bool losses_next(const struct losses *losses, losses_u64 n, bool bad) {
    return bad != (losses_draw(losses->seed, n, 1) < (bad ? losses->bad_to_good : losses->good_to_bad));
}

/* ---- Losses that are clocked by time: ge-time and slots ---- */

/* Stays of ge-time, good and bad in turn, after which the same ones come again: 512 KiB of kernel memory. */
#define LOSSES_STAYS (1u << 16)

/* The largest mean of a stay, so that no product below has more than 64 bits. */
#define LOSSES_MEAN_US_MAX 0xFFFFFFFFull

/* The next stay in a state: one of an exponential law with this mean, in whole microseconds. Made by
 * comparing draws alone (von Neumann, 1951), so that it is the same on every machine: of numbers that are
 * drawn as long as each is smaller than the last, the first is the fraction if there was an odd number of
 * them, and else the whole part grows by one. `drawn` counts the draws of the stream, one of which makes a
 * packet's transition in the model that is clocked by packets. */
LOSSES_INLINE losses_u64 losses_stay_us(losses_u64 seed, losses_u64 mean_us, losses_u64 *drawn) {
    for (losses_u64 whole = 0;; whole++) {
        losses_u64 first = losses_draw(seed, (*drawn)++, 1), last = first, next;
        bool is_odd = true;

        while ((next = losses_draw(seed, (*drawn)++, 1)) < last) {
            last = next;
            is_odd = !is_odd;
        }
        if (is_odd)
            return whole * mean_us + (mean_us * first >> 32);
    }
}

/* The slot of a recording that a repeated one begins with: drawn, or each trial would meet the same ones. */
LOSSES_INLINE losses_u64 losses_first_slot(losses_u64 seed, losses_u64 length, bool repeats) {
    return repeats ? losses_draw(seed, 0, 1) * length >> 32 : 0;
}

/* Which packet of a pattern of this length says what happens to packet n: one past its end says that it
 * passes. */
LOSSES_INLINE losses_u64 losses_place(losses_u64 length, bool repeats, losses_u64 n) {
    return repeats && length ? n % length : n;
}

#endif
