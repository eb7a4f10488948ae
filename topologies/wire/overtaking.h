// Frames that overtake: one that does leaves a nanosecond before the first of the `by` frames before it that
// is still on its way when its own last bit has been sent. So it overtakes that one and all behind it. Where
// none is on its way, it leaves as any other.
#pragma once

#include <stdint.h>

#define OVERTAKING_MOST 256

// When the last frames leave, by their numbers.
struct overtaking {
    uint64_t exits[OVERTAKING_MOST];
};

// When frame n leaves, or UINT64_MAX: it overtakes none.
static inline uint64_t overtaking_exit(const struct overtaking *overtaking, uint64_t n, uint64_t by,
                                       uint64_t serialized_ns) {
    uint64_t first_ns = UINT64_MAX;
    for (uint64_t behind = 1; behind <= by && behind <= n; behind++) {
        uint64_t exit_ns = overtaking->exits[(n - behind) % OVERTAKING_MOST];
        if (exit_ns > serialized_ns && exit_ns < first_ns)
            first_ns = exit_ns;
    }
    return first_ns == UINT64_MAX ? UINT64_MAX : first_ns - 1;
}

static inline void overtaking_note(struct overtaking *overtaking, uint64_t n, uint64_t exit_ns) {
    overtaking->exits[n % OVERTAKING_MOST] = exit_ns;
}
