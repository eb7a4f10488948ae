// DualPI2, the coupled queues of RFC 9332, Appendix A: frames of scalable senders (ECT(1), CE) have a queue
// that marks from about a millisecond on, and the others one that a PI controller drops or marks from. Its
// base probability p' couples them: p'^2 for the classic queue, 2 p' at least for the other. In whole
// numbers, and without draws: each queue adds its probabilities up, and marks when the sum is beyond 1 (A.1,
// recur()).
//
// With the RFC's values. While both queues have frames, the classic one has 1/16 of the bytes. The controller
// judges the longer of the two waits. Beyond p'^2 = 1/4, the classic queue drops also what could be marked,
// and the other drops as often (A.2).
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "frame_pool.h"

#define DUALPI2_TARGET_NS 15000000ll
#define DUALPI2_UPDATE_NS 15000000ull
#define DUALPI2_STEP_NS 800000ll // a frame that waited so long in the L4S queue is marked with a probability,
#define DUALPI2_RANGE_NS 400000ll // which is 1 when it waited so much longer
#define DUALPI2_ONE (1ll << 48)   // the probability 1
#define DUALPI2_MOST_CLASSIC (DUALPI2_ONE / 4)
#define DUALPI2_CLASSIC_SHARE 16 // it has one byte of so many, while both wait

struct dualpi2_queue {
    struct frames frames;
    int64_t sum; // of the probabilities since its last mark
};

struct dualpi2 {
    struct dualpi2_queue l4s, classic;
    int64_t l4s_credit; // bytes that the classic queue owes it: 15 for each of its own
    bool has_begun;
    uint64_t next_update_ns;
    int64_t base, last_wait_ns;
};

// How long the head of a queue has waited.
static inline int64_t dualpi2_wait_of(const struct dualpi2_queue *queue, uint64_t now_ns) {
    const struct frame *head = queue->frames.head;
    uint64_t wait_ns = head ? now_ns - head->arrived_ns : 0;
    return wait_ns > INT32_MAX * 1000ull ? INT32_MAX * 1000ll : (int64_t)wait_ns;
}

// alpha = 0.1 T / RTT_max^2 = 0.15 and beta = 0.3 / RTT_max = 3, per second.
static inline void dualpi2_update(struct dualpi2 *dualpi2, uint64_t at_ns) {
    int64_t l4s_ns = dualpi2_wait_of(&dualpi2->l4s, at_ns),
            classic_ns = dualpi2_wait_of(&dualpi2->classic, at_ns);
    int64_t wait_ns = l4s_ns > classic_ns ? l4s_ns : classic_ns;
    int64_t twentieths_ns = 3 * (wait_ns - DUALPI2_TARGET_NS) + 60 * (wait_ns - dualpi2->last_wait_ns);
    __int128 base = dualpi2->base + (__int128)twentieths_ns * DUALPI2_ONE / 20000000000ll;
    dualpi2->base = base < 0 ? 0 : base > DUALPI2_ONE ? DUALPI2_ONE : (int64_t)base;
    dualpi2->last_wait_ns = wait_ns;
}

// All updates until now_ns: nothing has come or gone since the last of them.
static inline void dualpi2_catch_up(struct dualpi2 *dualpi2, uint64_t now_ns) {
    if (!dualpi2->has_begun) {
        dualpi2->has_begun = true;
        dualpi2->next_update_ns = now_ns + DUALPI2_UPDATE_NS;
    }
    while (dualpi2->next_update_ns <= now_ns) {
        bool is_at_rest = !dualpi2->base && !dualpi2->last_wait_ns && !dualpi2->l4s.frames.head &&
                          !dualpi2->classic.frames.head;
        uint64_t updates = is_at_rest ? (now_ns - dualpi2->next_update_ns) / DUALPI2_UPDATE_NS + 1 : 1;
        if (!is_at_rest)
            dualpi2_update(dualpi2, dualpi2->next_update_ns);
        dualpi2->next_update_ns += updates * DUALPI2_UPDATE_NS;
    }
}

// A frame comes at now_ns.
static inline void dualpi2_put(struct dualpi2 *dualpi2, struct frame *frame, uint64_t now_ns) {
    dualpi2_catch_up(dualpi2, now_ns);
    bool is_l4s = frame->ecn == ECN_ECT_1 || frame->ecn == ECN_CE;
    frames_append(is_l4s ? &dualpi2->l4s.frames : &dualpi2->classic.frames, frame);
}

// Whether it happens this time; in the long run, with the probability.
static inline bool dualpi2_recurs(struct dualpi2_queue *queue, int64_t probability) {
    queue->sum += probability;
    bool happens = queue->sum > DUALPI2_ONE;
    queue->sum -= happens ? DUALPI2_ONE : 0;
    return happens;
}

static inline int64_t dualpi2_product(int64_t a, int64_t b) {
    return (int64_t)((__int128)a * b >> 48);
}

// The probability of the L4S queue by itself. Its last frame waits for none behind it.
static inline int64_t dualpi2_ramp(const struct dualpi2_queue *l4s, int64_t wait_ns) {
    int64_t beyond_ns = wait_ns - DUALPI2_STEP_NS;
    if (!l4s->frames.head || beyond_ns <= 0)
        return 0;
    return beyond_ns >= DUALPI2_RANGE_NS ? DUALPI2_ONE : beyond_ns * (DUALPI2_ONE / DUALPI2_RANGE_NS);
}

// Whether a frame that was taken from the L4S queue is sent; it may be marked.
static inline bool dualpi2_passes_l4s(struct dualpi2 *dualpi2, struct frame *frame, int64_t wait_ns) {
    struct dualpi2_queue *l4s = &dualpi2->l4s;
    bool is_overload = 2 * dualpi2->base >= DUALPI2_ONE;
    int64_t own = dualpi2_ramp(l4s, wait_ns), coupled = is_overload ? DUALPI2_ONE : 2 * dualpi2->base;
    if (is_overload && dualpi2_recurs(l4s, dualpi2_product(dualpi2->base, dualpi2->base)))
        return false;
    if (dualpi2_recurs(l4s, own > coupled ? own : coupled))
        frame_mark(frame);
    return true;
}

static inline bool dualpi2_passes_classic(struct dualpi2 *dualpi2, struct frame *frame) {
    int64_t probability = dualpi2_product(dualpi2->base, dualpi2->base);
    if (!dualpi2_recurs(&dualpi2->classic, probability))
        return true;
    return probability < DUALPI2_MOST_CLASSIC && frame_mark(frame);
}

// Weighted round robin, where there is a choice.
static inline bool dualpi2_is_turn_of_l4s(struct dualpi2 *dualpi2) {
    const struct frame *l4s = dualpi2->l4s.frames.head, *classic = dualpi2->classic.frames.head;
    if (!l4s || !classic) {
        dualpi2->l4s_credit = 0;
        return l4s;
    }
    bool is_l4s = dualpi2->l4s_credit >= 0;
    dualpi2->l4s_credit +=
        is_l4s ? -(int64_t)l4s->length : (DUALPI2_CLASSIC_SHARE - 1) * (int64_t)classic->length;
    return is_l4s;
}

// The frame that is sent at now_ns, when the transmitter is free, or NULL; those that are dropped before it
// are appended to `dropped`.
static inline struct frame *dualpi2_take(struct dualpi2 *dualpi2, uint64_t now_ns, struct frames *dropped) {
    dualpi2_catch_up(dualpi2, now_ns);
    while (dualpi2->l4s.frames.head || dualpi2->classic.frames.head) {
        bool is_l4s = dualpi2_is_turn_of_l4s(dualpi2);
        struct dualpi2_queue *queue = is_l4s ? &dualpi2->l4s : &dualpi2->classic;
        int64_t wait_ns = dualpi2_wait_of(queue, now_ns);
        struct frame *frame = frames_take(&queue->frames);
        if (is_l4s ? dualpi2_passes_l4s(dualpi2, frame, wait_ns) : dualpi2_passes_classic(dualpi2, frame))
            return frame;
        frames_append(dropped, frame);
    }
    return NULL;
}
