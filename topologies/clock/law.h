// When frames leave a link that serializes one after another and then delays: the law that lateness is
// measured against.
#pragma once

#include <stdint.h>

#include "../wire/lateness.h"

struct law {
    uint64_t bytes_per_s;
    uint64_t delay_ns;
    uint64_t late_bound_ns;

    uint64_t due_ns; // the last frame's intended departure
    uint64_t frames;
    uint64_t late;
    uint64_t early_max_ns; // by which one left before it was due
    struct lateness lateness;
    struct overdue overdue; // by late frames
};

// A frame has left, the next in the order of their entry.
void law_frame(struct law *law, uint64_t entered_ns, uint64_t left_ns, uint64_t bytes);
