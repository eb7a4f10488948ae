// PIE, the proportional integral controller of RFC 8033: which frames are dropped, or marked, when they come.
// Its delay is known and not estimated: how long the transmitter has work for. With the RFC's values, and
// without its optional parts but for ECN (5.1). In whole numbers, so that it is the same on every machine.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define PIE_TARGET_NS 15000000ll
#define PIE_UPDATE_NS 15000000ull
#define PIE_BURST_NS 150000000ll
#define PIE_ONE (1ll << 48)            // the probability 1
#define PIE_MARKS_BELOW (PIE_ONE / 10) // with more, frames that could be marked are dropped, too
#define PIE_MEAN_BYTES 1514

struct pie {
    bool has_begun;
    uint64_t next_update_ns;
    int64_t probability, burst_ns, last_delay_ns;
};

enum pie_verdict { PIE_PASSES, PIE_MARKS, PIE_DROPS };

// 4.2: alpha = 1/8 and beta = 5/4, per second, and less of both while the probability is small.
static inline int64_t pie_step(int64_t probability, int64_t delay_ns, int64_t last_delay_ns) {
    static const struct {
        int64_t below;
        int divisor;
    } SCALES[] = {{PIE_ONE / 1000000, 2048}, {PIE_ONE / 100000, 512}, {PIE_ONE / 10000, 128},
                  {PIE_ONE / 1000, 32},      {PIE_ONE / 100, 8},      {PIE_ONE / 10, 2}};
    int64_t eighths_ns = delay_ns - PIE_TARGET_NS + 10 * (delay_ns - last_delay_ns);
    __int128 step = (__int128)eighths_ns * PIE_ONE / 8000000000ll;
    for (unsigned i = 0; i < sizeof SCALES / sizeof *SCALES; i++)
        if (probability < SCALES[i].below)
            return (int64_t)(step / SCALES[i].divisor);
    return step > PIE_ONE / 50 ? PIE_ONE / 50 : (int64_t)step;
}

static inline void pie_update(struct pie *pie, int64_t delay_ns) {
    pie->probability += pie_step(pie->probability, delay_ns, pie->last_delay_ns);
    if (pie->probability > PIE_ONE)
        pie->probability = PIE_ONE;
    if (pie->probability < 0)
        pie->probability = 0;
    else if (!delay_ns && !pie->last_delay_ns)
        pie->probability -= pie->probability / 50;
    pie->burst_ns = pie->burst_ns > (int64_t)PIE_UPDATE_NS ? pie->burst_ns - (int64_t)PIE_UPDATE_NS : 0;
    if (!pie->probability && delay_ns < PIE_TARGET_NS / 2 && pie->last_delay_ns < PIE_TARGET_NS / 2)
        pie->burst_ns = PIE_BURST_NS;
    pie->last_delay_ns = delay_ns;
}

// The delay of a transmitter that has work until then.
static inline int64_t pie_delay(uint64_t free_ns, uint64_t now_ns) {
    uint64_t delay_ns = free_ns > now_ns ? free_ns - now_ns : 0;
    return delay_ns > INT32_MAX * 1000ull ? INT32_MAX * 1000ll : (int64_t)delay_ns;
}

// All updates until now_ns: nothing has come since the last of them.
static inline void pie_catch_up(struct pie *pie, uint64_t free_ns, uint64_t now_ns) {
    if (!pie->has_begun)
        *pie = (struct pie){
            .has_begun = true, .next_update_ns = now_ns + PIE_UPDATE_NS, .burst_ns = PIE_BURST_NS};
    while (pie->next_update_ns <= now_ns) {
        bool is_at_rest = !pie->probability && !pie->last_delay_ns && pie->next_update_ns >= free_ns &&
                          pie->burst_ns == PIE_BURST_NS;
        uint64_t updates = is_at_rest ? (now_ns - pie->next_update_ns) / PIE_UPDATE_NS + 1 : 1;
        if (!is_at_rest)
            pie_update(pie, pie_delay(free_ns, pie->next_update_ns));
        pie->next_update_ns += updates * PIE_UPDATE_NS;
    }
}

// A frame comes at now_ns to `queued_bytes` others and a transmitter that has work until free_ns. The draw of
// 32 bits is its own.
static inline enum pie_verdict pie_judge(struct pie *pie, uint64_t now_ns, uint64_t free_ns,
                                         uint64_t queued_bytes, uint64_t draw, bool can_be_marked) {
    pie_catch_up(pie, free_ns, now_ns);
    bool is_little = (pie->last_delay_ns < PIE_TARGET_NS / 2 && pie->probability < PIE_ONE / 5) ||
                     queued_bytes <= 2 * PIE_MEAN_BYTES;
    if (pie->burst_ns || is_little || (int64_t)(draw << 16) >= pie->probability)
        return PIE_PASSES;
    return can_be_marked && pie->probability < PIE_MARKS_BELOW ? PIE_MARKS : PIE_DROPS;
}
