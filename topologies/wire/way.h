// One direction with real frames and the real time: it reads them from one TAP and writes them into the
// other.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "direction.h"
#include "frame_pool.h"
#include "lateness.h"
#include "origin.h"
#include "report.h"
#include "tap.h"

struct way {
    struct tap *entrance, *exit;
    struct direction direction;
    struct lateness lateness, read_lag;
    struct lateness schedule_late; // of the frames that followed the schedule
    struct overdue late_time;      // of the late frames
    uint64_t first_ns;             // when the first frame came after the start, or NEVER
    uint64_t late, write_errors, kernel_dropped;
};

void way_init(struct way *way, struct tap *entrance, struct tap *exit,
              const struct direction_settings *settings);

// Reads all frames that are there. Frames that come meanwhile have to wait, or writes would.
void way_read(struct way *way, struct frame_pool *pool, struct origin *origin, bool is_up);

// Frames that are due now, of those that are due at `horizon_ns` or before.
void way_write(struct way *way, struct frame_pool *pool, uint64_t late_bound_ns, uint64_t horizon_ns);

struct direction_report way_report(const struct way *way);
