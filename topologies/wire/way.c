#include "way.h"

#include "arrivals.h"
#include "headers.h"
#include "system.h"
#include "too_big.h"

enum { BATCH = 64 }; // frames written to one side before the other has its turn

void way_init(struct way *way, struct tap *entrance, struct tap *exit,
              const struct direction_settings *settings) {
    way->entrance = entrance;
    way->exit = exit;
    way->first_ns = NEVER;
    direction_init(&way->direction, settings);
}

static void forget_dropped(struct way *way, struct frame_pool *pool) {
    for (struct frame *frame; (frame = direction_dropped(&way->direction));)
        frame_pool_return(pool, frame);
}

// Tells the sender of a frame that is longer than the MTU, at the end at which it came.
static void tell_sender(struct way *way, struct frame_pool *pool, const struct frame *frame) {
    struct frame *answer = frame_pool_take(pool);
    if (!answer)
        die(EXIT_FAILED, "out of memory for an ICMP");
    if (too_big(frame, (uint32_t)way->direction.settings.mtu_bytes, answer, pool->frame_capacity)) {
        if (tap_write(way->entrance, answer))
            way->direction.icmp_sent++;
        else
            way->write_errors++;
    }
    frame_pool_return(pool, answer);
}

void way_read(struct way *way, struct frame_pool *pool, struct origin *origin, bool is_up) {
    struct arrivals *arrivals = &way->entrance->arrivals;
    for (uint64_t waiting = arrivals_look(arrivals); waiting; waiting--) {
        struct frame *frame = frame_pool_take(pool);
        if (!frame)
            die(EXIT_FAILED, "out of memory with %llu frames in flight",
                (unsigned long long)direction_in_flight(&way->direction));
        if (!tap_read(way->entrance, frame, pool->frame_capacity)) {
            frame_pool_return(pool, frame);
            return;
        }
        uint64_t arrived_ns = arrivals_take(arrivals);
        lateness_record(&way->read_lag, system_now_ns() - arrived_ns);
        if (way->first_ns == NEVER && arrived_ns >= origin->from_ns)
            way->first_ns = arrived_ns;
        if (is_up)
            origin_note(origin, frame, arrived_ns);
        direction_start(&way->direction, origin_ns(origin));
        frame->ecn = way->direction.settings.ecn ? ecn_of(frame) : ECN_NOT_CAPABLE;
        if (way->direction.settings.queue == QUEUE_FQ_CODEL)
            frame->flow = flow_of(frame);
        enum fate fate = direction_arrive(&way->direction, frame, arrived_ns);
        if (fate == FATE_OVERSIZE && way->direction.settings.mtu_icmp)
            tell_sender(way, pool, frame);
        if (fate != FATE_ACCEPTED)
            frame_pool_return(pool, frame);
        forget_dropped(way, pool);
    }
}

// A copy has the flipped bit already.
static void flip(const struct way *way, struct frame *frame) {
    if (!frame_is_unreadable(frame) || frame->effects & EFFECT_FLIPPED)
        return;
    corrupt(frame, jitter_draw(~way->direction.settings.corrupt_seed, frame->number));
    frame->effects |= EFFECT_FLIPPED;
}

void way_write(struct way *way, struct frame_pool *pool, uint64_t late_bound_ns, uint64_t horizon_ns) {
    for (int i = 0; i < BATCH; i++) {
        uint64_t now_ns = system_now_ns();
        struct frame *frame = direction_exit(&way->direction, now_ns < horizon_ns ? now_ns : horizon_ns);
        forget_dropped(way, pool);
        if (!frame)
            return;
        if (frame->effects & EFFECT_MARK)
            write_ce(frame);
        flip(way, frame);
        if (!tap_write(way->exit, frame))
            way->write_errors++;
        uint64_t lateness_ns = now_ns - frame->exit_ns;
        lateness_record(&way->lateness, lateness_ns);
        if (way->direction.settings.schedule.count && frame->serialized_ns >= way->direction.started_ns)
            lateness_record(&way->schedule_late, lateness_ns);
        if (lateness_ns > late_bound_ns) {
            way->late++;
            overdue_add(&way->late_time, frame->exit_ns, now_ns);
        }
        frame_pool_return(pool, frame);
    }
}

struct direction_report way_report(const struct way *way) {
    return (struct direction_report){
        .direction = &way->direction,
        .lateness = &way->lateness,
        .read_lag = &way->read_lag,
        .schedule_late = &way->schedule_late,
        .first_ns = way->first_ns,
        .late = way->late,
        .late_sum_ns = way->late_time.total_ns,
        .write_errors = way->write_errors,
        .kernel_dropped = way->kernel_dropped,
    };
}
