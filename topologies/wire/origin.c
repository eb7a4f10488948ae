#include "origin.h"

#include <string.h>

#include "headers.h"
#include "system.h"

enum { IPV4_SOURCE_AT = ETHERNET_BYTES + 12, IPV6_SOURCE_AT = ETHERNET_BYTES + 8 };

void origin_open(struct origin *origin, int fd) {
    static _Atomic uint64_t own;
    origin->from_ns = NEVER;
    origin->first_ns =
        fd < 0 ? &own : system_map_shared(fd, sizeof *origin->first_ns, "the time of the first frame");
}

static bool is_of_client(const struct origin *origin, const struct frame *frame) {
    unsigned version = ip_version_of(frame);
    if (!origin->client_count || !version)
        return !origin->client_count;
    const uint8_t *source = frame->bytes + (version == 4 ? IPV4_SOURCE_AT : IPV6_SOURCE_AT);
    for (const struct client_address *client = origin->clients;
         client < origin->clients + origin->client_count; client++)
        if (client->version == version && memcmp(source, client->bytes, version == 4 ? 4 : 16) == 0)
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
