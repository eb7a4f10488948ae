#include "lateness.h"

#include <math.h>

// Durations below 16 ns have a bucket each; each octave above has 16.
static unsigned bucket_of(uint64_t duration_ns) {
    if (duration_ns < 16)
        return (unsigned)duration_ns;
    unsigned octave = 63 - (unsigned)__builtin_clzll(duration_ns);
    return (octave - 3) * 16 + (unsigned)((duration_ns >> (octave - 4)) & 15);
}

static uint64_t upper_bound_of(unsigned bucket) {
    if (bucket < 16)
        return bucket;
    unsigned shift = bucket / 16 - 1;
    return ((16ull + bucket % 16) << shift) + ((1ull << shift) - 1);
}

void lateness_record(struct lateness *lateness, uint64_t duration_ns) {
    lateness->buckets[bucket_of(duration_ns)]++;
    lateness->count++;
    lateness->sum_ns += duration_ns;
    if (duration_ns > lateness->max_ns)
        lateness->max_ns = duration_ns;
}

void overdue_add(struct overdue *overdue, uint64_t due_ns, uint64_t done_ns) {
    uint64_t from_ns = due_ns > overdue->until_ns ? due_ns : overdue->until_ns;
    overdue->total_ns += done_ns - from_ns;
    overdue->until_ns = done_ns;
}

uint64_t lateness_mean(const struct lateness *lateness) {
    return lateness->count ? lateness->sum_ns / lateness->count : 0;
}

uint64_t lateness_quantile(const struct lateness *lateness, double q) {
    uint64_t wanted = (uint64_t)ceil(q * (double)lateness->count);
    uint64_t seen = 0;
    for (unsigned bucket = 0; bucket < LATENESS_BUCKETS; bucket++) {
        seen += lateness->buckets[bucket];
        if (seen >= wanted && seen > 0) {
            uint64_t bound = upper_bound_of(bucket);
            return bound < lateness->max_ns ? bound : lateness->max_ns;
        }
    }
    return 0;
}
