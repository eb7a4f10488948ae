#include "rest.h"

enum {
    EVERY_NS = 10000000,
    TOO_MUCH_PERCENT = 85,
    ENOUGH_PERCENT = 75,
    SHORTEST_NS = 10000,
    LONGEST_NS = 40000,
};

void rest_init(struct rest *rest, uint64_t now_ns, uint64_t cpu_ns) {
    *rest = (struct rest){.adapted_ns = now_ns, .cpu_ns = cpu_ns};
}

bool rest_is_due(const struct rest *rest, uint64_t now_ns) {
    return now_ns - rest->adapted_ns >= EVERY_NS;
}

static uint64_t longer(uint64_t ns) {
    if (ns < SHORTEST_NS)
        return SHORTEST_NS;
    return 2 * ns < LONGEST_NS ? 2 * ns : LONGEST_NS;
}

static uint64_t shorter(uint64_t ns) {
    return ns / 2 < SHORTEST_NS ? 0 : ns / 2;
}

void rest_adapt(struct rest *rest, uint64_t now_ns, uint64_t cpu_ns) {
    uint64_t percent = 100 * (cpu_ns - rest->cpu_ns) / (now_ns - rest->adapted_ns);
    if (percent > TOO_MUCH_PERCENT)
        rest->ns = longer(rest->ns);
    else if (percent < ENOUGH_PERCENT)
        rest->ns = shorter(rest->ns);
    rest->adapted_ns = now_ns;
    rest->cpu_ns = cpu_ns;
}
