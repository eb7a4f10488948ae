/* A message of the BPF programs to the command: a frame at one end of the link. Also read by the BPF
 * compiler. */
#ifndef CLOCK_H
#define CLOCK_H

enum clock_direction { CLOCK_UP, CLOCK_DOWN, CLOCK_DIRECTIONS };
enum clock_event { CLOCK_ENTERED = 1, CLOCK_LEFT };

struct clock_sighting {
    __u64 key; /* the same where a frame enters and where it leaves */
    __u64 at_ns;
    __u32 bytes; /* of Ethernet */
    __u16 direction;
    __u16 event;
};

#endif
