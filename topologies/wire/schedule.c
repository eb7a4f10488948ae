#include "schedule.h"

#include <stddef.h>

#define NS_PER_S 1000000000ull
#define NEVER UINT64_MAX

enum { MOST_BURST_BYTES = 1 << 26 };

bool schedule_is_right(const struct schedule *schedule) {
    uint64_t end_ns = 0;
    bool carries = schedule->repeat != SCHEDULE_LOOPS;
    for (uint64_t i = 0; i < schedule->count; i++) {
        const struct schedule_step *step = &schedule->steps[i];
        if (step->end_ns <= end_ns || step->end_ns > SCHEDULE_MOST_NS ||
            step->rate_bps > SCHEDULE_MOST_RATE_BPS || step->delay_ns > SCHEDULE_MOST_DELAY_NS ||
            step->burst_bytes > MOST_BURST_BYTES)
            return false;
        carries |= step->rate_bps || step->burst_bytes;
        end_ns = step->end_ns;
    }
    return carries && schedule->count && schedule->offset_ns <= SCHEDULE_MOST_NS;
}

uint64_t schedule_least_delay(const struct schedule *schedule, uint64_t delay_ns) {
    for (uint64_t i = 0; i < schedule->count; i++)
        if (schedule->steps[i].delay_ns < delay_ns)
            delay_ns = schedule->steps[i].delay_ns;
    return delay_ns;
}

static uint64_t period_ns(const struct schedule *schedule) {
    return schedule->steps[schedule->count - 1].end_ns;
}

struct schedule_place schedule_find(const struct schedule *schedule, uint64_t time_ns) {
    struct schedule_place place = {0};
    if (time_ns >= period_ns(schedule)) {
        if (schedule->repeat != SCHEDULE_LOOPS)
            return (struct schedule_place){.step = schedule->count};
        place.cycle_ns = time_ns - time_ns % period_ns(schedule);
    }
    uint64_t low = 0, high = schedule->count - 1;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (place.cycle_ns + schedule->steps[middle].end_ns > time_ns)
            high = middle;
        else
            low = middle + 1;
    }
    place.step = low;
    return place;
}

const struct schedule_step *schedule_at(const struct schedule *schedule, struct schedule_place place,
                                        const struct schedule_step *after) {
    if (place.step < schedule->count)
        return &schedule->steps[place.step];
    return schedule->repeat == SCHEDULE_HOLDS ? &schedule->steps[schedule->count - 1] : after;
}

static uint64_t end_of(const struct schedule *schedule, struct schedule_place place) {
    return place.step < schedule->count ? place.cycle_ns + schedule->steps[place.step].end_ns : NEVER;
}

static void go_on(const struct schedule *schedule, struct schedule_place *place) {
    if (++place->step == schedule->count && schedule->repeat == SCHEDULE_LOOPS) {
        place->cycle_ns += period_ns(schedule);
        place->step = 0;
    }
}

void schedule_send(const struct schedule *schedule, const struct schedule_step *after, uint32_t bytes,
                   struct schedule_sender *sender) {
    if (sender->free_ns == NEVER)
        return;
    uint64_t work = bytes * 8ull * NS_PER_S + sender->remainder;
    sender->remainder = 0;
    if (work <= sender->credit) {
        sender->credit -= work;
        return;
    }
    work -= sender->credit;
    sender->credit = 0;
    for (;; go_on(schedule, &sender->place)) {
        const struct schedule_step *step = schedule_at(schedule, sender->place, after);
        uint64_t end_ns = end_of(schedule, sender->place);
        unsigned __int128 carried = (unsigned __int128)step->rate_bps * (end_ns - sender->free_ns);
        if (work <= carried) {
            sender->free_ns += work / step->rate_bps;
            sender->remainder = work % step->rate_bps;
            return;
        }
        if (end_ns == NEVER) {
            sender->free_ns = NEVER;
            return;
        }
        work -= (uint64_t)carried;
        sender->free_ns = end_ns;
        uint64_t burst = step->burst_bytes * 8 * NS_PER_S;
        if (work <= burst) {
            sender->credit = burst - work;
            go_on(schedule, &sender->place);
            return;
        }
        work -= burst;
    }
}

uint64_t schedule_delay(const struct schedule *schedule, const struct schedule_step *after,
                        const struct schedule_sender *sender) {
    struct schedule_place place = sender->place;
    if (end_of(schedule, place) <= sender->free_ns)
        go_on(schedule, &place);
    return schedule_at(schedule, place, after)->delay_ns;
}
