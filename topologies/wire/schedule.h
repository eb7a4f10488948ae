// How a direction's rate and delay change with time: steps one behind the other, which loop, hold or end.
//
// A step lasts until end_ns, counted from the schedule's beginning. It carries rate_bps all the while, and
// burst_bytes at its end besides, which only frames use that wait then. Work is counted in bits times 10⁹, so
// that a rate of 1 bit/s does 1 of it in a nanosecond and nothing is ever rounded away.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// The largest rate, delay and time of a link, whether it changes or not.
#define SCHEDULE_MOST_RATE_BPS 100000000000ull
#define SCHEDULE_MOST_DELAY_NS 1000000000000ull
#define SCHEDULE_MOST_NS (1ull << 62)

struct schedule_step {
    uint64_t end_ns;
    uint64_t rate_bps;
    uint64_t delay_ns;
    uint64_t burst_bytes;
};

enum schedule_repeat { SCHEDULE_LOOPS, SCHEDULE_HOLDS, SCHEDULE_ENDS };

struct schedule {
    const struct schedule_step *steps;
    uint64_t count; // 0: there is none
    enum schedule_repeat repeat;
    uint64_t offset_ns; // where in it the link begins
};

// Where in a schedule something is: the step, and when the cycle of steps began. Behind the last step of one
// that does not loop, `step` is its count.
struct schedule_place {
    uint64_t step, cycle_ns;
};

// The work that has been sent up to a time, to the last fraction.
struct schedule_sender {
    uint64_t free_ns;   // when the last bit was sent, or UINT64_MAX: it never is
    uint64_t remainder; // work of it that was done after that nanosecond had begun
    uint64_t credit;    // work that is left of a burst at that time
    struct schedule_place place;
};

// Whether ends ascend, nothing is too large, and one that loops carries something.
bool schedule_is_right(const struct schedule *schedule);

// The least delay that it ever has; `delay_ns` is that of where it has ended, and of where there is none.
uint64_t schedule_least_delay(const struct schedule *schedule, uint64_t delay_ns);

// The place at a time since the schedule's beginning. The step is the one that ends later.
struct schedule_place schedule_find(const struct schedule *schedule, uint64_t time_ns);

// The step at a place; behind the last one, the last one if the schedule holds, and `after` if it ends.
const struct schedule_step *schedule_at(const struct schedule *schedule, struct schedule_place place,
                                        const struct schedule_step *after);

// Sends so many bytes behind what the sender has sent. Times are those since the schedule's beginning.
void schedule_send(const struct schedule *schedule, const struct schedule_step *after, uint32_t bytes,
                   struct schedule_sender *sender);

// The delay at the time at which the sender sent its last bit.
uint64_t schedule_delay(const struct schedule *schedule, const struct schedule_step *after,
                        const struct schedule_sender *sender);
