// A log-linear histogram of durations: exact count and maximum, quantiles with a relative error below 1/16.
#pragma once

#include <stdint.h>

enum { LATENESS_BUCKETS = 16 * 61 };

struct lateness {
    uint64_t buckets[LATENESS_BUCKETS];
    uint64_t count;
    uint64_t max_ns;
};

void lateness_record(struct lateness *lateness, uint64_t duration_ns);

// An upper bound, at most the maximum, of the quantile 0 < q <= 1; 0 when nothing was recorded.
uint64_t lateness_quantile(const struct lateness *lateness, double q);
