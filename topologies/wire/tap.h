// One end of the link: a TAP interface made in a network namespace.
// Without TUNSETOFFLOAD the kernel segments and checksums what it hands over: one read is one frame of the
// wire.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "arrivals.h"
#include "frame_pool.h"

struct tap {
    int fd;
    int statistics; // /proc/thread-self/net/dev of its namespace
    const char *interface;
    struct arrivals arrivals;
};

// Frames that the kernel discarded, out of our sight: on its way to us when we didn't read in time (outgoing,
// the interface's tx), and on its way from us into the namespace (incoming, the interface's rx).
struct tap_drops {
    uint64_t outgoing, incoming;
};

// Makes the interface, sets its MTU, and brings it up; the calling thread stays in its own namespace.
// The interface ends with the process or, if it is kept, with the namespace.
void tap_open(struct tap *tap, const char *netns_path, const char *interface, uint32_t mtu, bool keep);

// False when there is nothing to read. The length may exceed the frame's capacity: then only its beginning is
// there.
bool tap_read(const struct tap *tap, struct frame *frame, uint32_t capacity);

// False when the kernel refuses the frame.
bool tap_write(const struct tap *tap, const struct frame *frame);

struct tap_drops tap_drops(const struct tap *tap);
