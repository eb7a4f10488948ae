// A log-linear histogram of durations: exact count, sum and maximum, quantiles with a relative error below
// 1/16.
#pragma once

#include <stdint.h>

enum { LATENESS_BUCKETS = 16 * 61 };

struct lateness {
    uint64_t buckets[LATENESS_BUCKETS];
    uint64_t count;
    uint64_t sum_ns;
    uint64_t max_ns;
};

void lateness_record(struct lateness *lateness, uint64_t duration_ns);

// How long something was overdue, in all. Things come in the order in which they are due; where several are
// overdue at the same time, that time counts once.
struct overdue {
    uint64_t total_ns;
    uint64_t until_ns; // the end of the last interval
};

// Something was due at due_ns, and came at done_ns.
void overdue_add(struct overdue *overdue, uint64_t due_ns, uint64_t done_ns);

// 0 when nothing was recorded.
uint64_t lateness_mean(const struct lateness *lateness);

// An upper bound, at most the maximum, of the quantile 0 < q <= 1; 0 when nothing was recorded.
uint64_t lateness_quantile(const struct lateness *lateness, double q);
