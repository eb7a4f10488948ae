// Resting. The kernel stops a program of the real-time class for 50 ms once it has taken 95 % of a second of
// its processor (sched(7), RT throttling), and meanwhile frames are late or lost. A link of 1 Gbit/s comes
// near to that, though most of its time goes into waking for each single frame. So one that takes too much
// sleeps for a while before each look, and carries what has become due meanwhile together.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct rest {
    uint64_t ns; // how long to sleep before each look; 0 where the link takes little
    uint64_t adapted_ns, cpu_ns;
};

void rest_init(struct rest *rest, uint64_t now_ns, uint64_t cpu_ns);

// Whether it is time for rest_adapt().
bool rest_is_due(const struct rest *rest, uint64_t now_ns);

// cpu_ns: the CPU time that was taken until now.
void rest_adapt(struct rest *rest, uint64_t now_ns, uint64_t cpu_ns);
