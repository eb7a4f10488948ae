#include "waking.h"

enum {
    SHARE = 100,       // one of so many nanoseconds may be spun
    SAVED_NS = 500000, // the most that is left for a burst of frames after idleness
    FIRST_MARGIN_NS = 20000,
    MOST_MARGIN_NS = 100000,
    STEP_NS = 100, // up and down alike: so half of the wake-ups take longer
};

void waking_init(struct waking *waking, uint64_t now_ns) {
    *waking = (struct waking){.margin_ns = FIRST_MARGIN_NS, .budget_ns = SAVED_NS, .counted_ns = now_ns};
}

static void count(struct waking *waking, uint64_t now_ns) {
    waking->budget_ns += (now_ns - waking->counted_ns) / SHARE;
    if (waking->budget_ns > SAVED_NS)
        waking->budget_ns = SAVED_NS;
    waking->counted_ns = now_ns;
}

uint64_t waking_alarm(struct waking *waking, uint64_t due_ns, uint64_t now_ns) {
    count(waking, now_ns);
    uint64_t margin_ns = waking->margin_ns < waking->budget_ns ? waking->margin_ns : waking->budget_ns;
    return due_ns > margin_ns ? due_ns - margin_ns : 0;
}

void waking_learn(struct waking *waking, uint64_t late_ns) {
    if (late_ns > waking->margin_ns && waking->margin_ns + STEP_NS <= MOST_MARGIN_NS)
        waking->margin_ns += STEP_NS;
    else if (late_ns <= waking->margin_ns && waking->margin_ns >= STEP_NS)
        waking->margin_ns -= STEP_NS;
}

void waking_spend(struct waking *waking, uint64_t spun_ns) {
    waking->spun_ns += spun_ns;
    waking->budget_ns -= spun_ns < waking->budget_ns ? spun_ns : waking->budget_ns;
}
