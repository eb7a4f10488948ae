// How long this thread was ready to run but did not run: the second number of /proc/thread-self/schedstat.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct run_delay {
    int fd;
    bool known; // false when the kernel doesn't keep it
    uint64_t total_ns;
};

void run_delay_open(struct run_delay *run_delay);

// Nanoseconds since the last call, 0 when unknown. Costs one pread, about 1 µs.
uint64_t run_delay_since_last(struct run_delay *run_delay);
