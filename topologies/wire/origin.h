// From when outages are counted: from when the first frame of the measured client came, to whichever link of
// the topology. The links are processes of their own. They share this time through memory that their maker
// gives to each of them; a link that is given none counts from the first frame that comes to itself.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "direction.h"

enum { MOST_CLIENTS = 8 }; // as many addresses may a client have

struct client_address {
    unsigned version;  // of IP: 4 or 6
    uint8_t bytes[16]; // in the order of the network; IPv4 has four
};

struct origin {
    _Atomic uint64_t *first_ns;                  // shared; 0 until the first frame comes
    struct client_address clients[MOST_CLIENTS]; // of the measured client
    unsigned client_count;                       // 0: a host that sends upwards is the client
    uint64_t from_ns; // frames that came before are none of the client's; NEVER: not yet started
};

// `fd` is of the memory, of 8 bytes, or -1.
void origin_open(struct origin *origin, int fd);

// A frame has come to the link upwards.
void origin_note(struct origin *origin, const struct frame *frame, uint64_t arrived_ns);

// The time, or NEVER.
uint64_t origin_ns(const struct origin *origin);
