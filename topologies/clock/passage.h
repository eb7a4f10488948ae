// Which of the frames that entered a link is the one that leaves: the link keeps their order.
//
// A frame that leaves is the oldest of its key that entered after the last one that left; those in between
// were dropped. Two CPUs may have reported two frames in another order than they took: a frame that was
// passed over can still leave. If some frames that share a key were dropped, the clock cannot tell which. It
// takes the one that leaves for the oldest, so that the frame is late rather than too early.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
    PASSAGE_ENTRIES_MAX = 1 << 18, // 31 s of full frames at 100 Mbps; beyond, the oldest are forgotten
    PASSAGE_PASSED_MAX = 1 << 12,  // frames that another CPU may have reported meanwhile: 49 ms at 1 Gbps
};

struct passage_entry {
    uint64_t key;
    uint64_t at_ns;
    bool has_left;
};

// Numbers of entries, which count up. All zero: nothing has entered yet.
struct passage {
    uint64_t oldest;  // that may still leave
    uint64_t waiting; // the first after the last that left
    uint64_t end;
    struct passage_entry entries[PASSAGE_ENTRIES_MAX];
};

void passage_enter(struct passage *passage, uint64_t key, uint64_t at_ns);

// When the frame of this key that leaves now entered; 0: it was not seen to enter, or it was forgotten.
uint64_t passage_leave(struct passage *passage, uint64_t key);
