#include "origin.h"

#include <string.h>

#include "system.h"

enum { ETHERTYPE_AT = 12, IPV4_SOURCE_AT = 26, IPV4_DESTINATION_AT = 30 };

void origin_open(struct origin *origin, int fd) {
    static _Atomic uint64_t own;
    origin->from_ns = NEVER;
    origin->first_ns =
        fd < 0 ? &own : system_map_shared(fd, sizeof *origin->first_ns, "the time of the first frame");
}

static bool is_of_client(const struct origin *origin, const struct frame *frame) {
    static const uint8_t IPV4[] = {0x08, 0x00};
    if (!origin->client_count)
        return true;
    if (frame->length < IPV4_DESTINATION_AT || memcmp(frame->bytes + ETHERTYPE_AT, IPV4, sizeof IPV4) != 0)
        return false;
    for (unsigned i = 0; i < origin->client_count; i++)
        if (memcmp(frame->bytes + IPV4_SOURCE_AT, &origin->clients[i], sizeof origin->clients[i]) == 0)
            return true;
    return false;
}

// Another link may have noted a later frame of the client before this one.
void origin_note(struct origin *origin, const struct frame *frame, uint64_t arrived_ns) {
    uint64_t known_ns = atomic_load(origin->first_ns);
    if (arrived_ns < origin->from_ns || (known_ns && known_ns <= arrived_ns) || !is_of_client(origin, frame))
        return;
    while ((!known_ns || arrived_ns < known_ns) &&
           !atomic_compare_exchange_weak(origin->first_ns, &known_ns, arrived_ns))
        continue;
}

uint64_t origin_ns(const struct origin *origin) {
    uint64_t first_ns = atomic_load(origin->first_ns);
    return first_ns ? first_ns : NEVER;
}
