/* What the BPF programs tell the command: a frame that has left the link. Also read by the BPF compiler. */
#ifndef CLOCK_H
#define CLOCK_H

enum clock_direction { CLOCK_UP, CLOCK_DOWN, CLOCK_DIRECTIONS };

struct clock_frame {
    __u64 entered_ns; /* 0: nobody saw it enter */
    __u64 left_ns;
    __u32 bytes; /* of Ethernet */
    __u32 direction;
};

#endif
