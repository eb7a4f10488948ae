// The output of the program: one line of JSON when the link is up, one when it has been told from when on
// outages count, one when it has been stopped.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "direction.h"
#include "lateness.h"
#include "options.h"

struct scheduling {
    bool fifo;          // SCHED_FIFO was granted
    bool memory_locked; // mlockall was granted
};

struct direction_report {
    const struct direction *direction;
    const struct lateness *lateness;      // of the write of each frame out
    const struct lateness *read_lag;      // how long each frame in waited to be read
    const struct lateness *schedule_late; // of the write of each that followed a schedule
    uint64_t first_ns;                    // when the first frame in came after the start, or NEVER
    uint64_t late;                        // frames out whose lateness exceeds the bound
    uint64_t late_sum_ns;                 // while any of these was overdue
    uint64_t write_errors;                // frames out that the kernel refused
    uint64_t kernel_dropped;              // frames that the kernel discarded before or behind the link
};

struct report {
    const struct options *options;
    int argc;
    char **argv;
    struct scheduling scheduling;
    double cpu_s, elapsed_s; // since the link was up
    double spun_s;           // of the CPU time, until frames were due
    struct direction_report up, down;
};

void report_ready(const struct options *options, const struct scheduling *scheduling);
void report_started(void);
void report_link(const struct report *report);
