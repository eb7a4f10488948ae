// SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause OR GPL-2.0-only
// When each frame came to a TAP, as the kernel saw it: a BPF program on the TAP notes the time before the
// frame waits for us. So a frame that we read late, since we were busy, stopped or kept from running, leaves
// in time if there still is time, and if not its lateness is known.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct arrival_log;

struct arrivals {
    const struct arrival_log *log; // written by the kernel
    uint64_t seen, taken;          // frames
    uint64_t last_ns;
};

// Before the interface is up: the first frame must be noted, too.
void arrivals_open(struct arrivals *arrivals, int tap_fd);

// How many frames have come that were not taken. The last of them may not be readable yet, and those that the
// kernel discarded behind the program never will be.
uint64_t arrivals_look(struct arrivals *arrivals);

// Whether any came since the last look.
bool arrivals_unseen(const struct arrivals *arrivals);

// When the frame that was read came, on CLOCK_MONOTONIC; once for each, in their order. It never decreases.
// Once the kernel has discarded frames, which the report tells, the times are those of other frames.
uint64_t arrivals_take(struct arrivals *arrivals);
