// Waking in time. A processor that sleeps takes 10 to 50 µs to wake, so that a frame would leave that much
// late. The alarm is set earlier, by the time that waking has lately taken. If wire is awake too soon, it
// spins until the frame is due, for a small share of the time at most, and never while nothing is due.
#pragma once

#include <stdint.h>

struct waking {
    uint64_t margin_ns;  // half of the times, waking takes less
    uint64_t budget_ns;  // of spinning
    uint64_t spun_ns;    // in all
    uint64_t counted_ns; // the budget is that of this time
};

void waking_init(struct waking *waking, uint64_t now_ns);

// The time at which the alarm for a frame that is due at due_ns has to go off.
uint64_t waking_alarm(struct waking *waking, uint64_t due_ns, uint64_t now_ns);

// An alarm has woken us, so late.
void waking_learn(struct waking *waking, uint64_t late_ns);

// So long was spun.
void waking_spend(struct waking *waking, uint64_t spun_ns);
