#include "lane.h"

#include "arrivals.h"
#include "system.h"

enum { BATCH = 64 }; // frames written to one side before the other has its turn

void lane_init(struct lane *lane, struct tap *entrance, struct tap *exit,
               const struct direction_settings *settings) {
    lane->entrance = entrance;
    lane->exit = exit;
    lane->first_ns = NEVER;
    direction_init(&lane->direction, settings);
}

static void forget_dropped(struct lane *lane, struct frame_pool *pool) {
    for (struct frame *frame; (frame = direction_dropped(&lane->direction));)
        frame_pool_return(pool, frame);
}

void lane_read(struct lane *lane, struct frame_pool *pool, struct origin *origin, bool is_up) {
    struct arrivals *arrivals = &lane->entrance->arrivals;
    for (uint64_t waiting = arrivals_look(arrivals); waiting; waiting--) {
        struct frame *frame = frame_pool_take(pool);
        if (!frame)
            die(EXIT_FAILED, "out of memory with %llu frames in flight",
                (unsigned long long)direction_in_flight(&lane->direction));
        if (!tap_read(lane->entrance, frame, pool->frame_capacity)) {
            frame_pool_return(pool, frame);
            return;
        }
        uint64_t arrived_ns = arrivals_take(arrivals);
        lateness_record(&lane->read_lag, system_now_ns() - arrived_ns);
        if (lane->first_ns == NEVER && arrived_ns >= origin->from_ns)
            lane->first_ns = arrived_ns;
        if (is_up)
            origin_note(origin, frame, arrived_ns);
        direction_start(&lane->direction, origin_ns(origin));
        if (direction_arrive(&lane->direction, frame, arrived_ns) != FATE_ACCEPTED)
            frame_pool_return(pool, frame);
        forget_dropped(lane, pool);
    }
}

void lane_write(struct lane *lane, struct frame_pool *pool, uint64_t late_bound_ns, uint64_t horizon_ns) {
    for (int i = 0; i < BATCH; i++) {
        uint64_t now_ns = system_now_ns();
        struct frame *frame = direction_exit(&lane->direction, now_ns < horizon_ns ? now_ns : horizon_ns);
        forget_dropped(lane, pool);
        if (!frame)
            return;
        if (!tap_write(lane->exit, frame))
            lane->write_errors++;
        uint64_t lateness_ns = now_ns - frame->exit_ns;
        lateness_record(&lane->lateness, lateness_ns);
        if (lane->direction.settings.schedule.count && frame->serialized_ns >= lane->direction.started_ns)
            lateness_record(&lane->schedule_late, lateness_ns);
        if (lateness_ns > late_bound_ns) {
            lane->late++;
            overdue_add(&lane->late_time, frame->exit_ns, now_ns);
        }
        frame_pool_return(pool, frame);
    }
}

struct direction_report lane_report(const struct lane *lane) {
    return (struct direction_report){
        .direction = &lane->direction,
        .lateness = &lane->lateness,
        .read_lag = &lane->read_lag,
        .schedule_late = &lane->schedule_late,
        .first_ns = lane->first_ns,
        .late = lane->late,
        .late_sum_ns = lane->late_time.total_ns,
        .write_errors = lane->write_errors,
        .kernel_dropped = lane->kernel_dropped,
    };
}
