#include "direction.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_S 1000000000ull

enum { ETHERNET_HEADER = 14 };

// Rare work of a link, out of the way of what each does for every frame.
#define SELDOM __attribute__((noinline))

static uint64_t policer_dropped(const struct direction *direction) {
    return direction->policer_dropped;
}

static uint64_t corrupted(const struct direction *direction) {
    return direction->corrupted;
}

static uint64_t marked(const struct direction *direction) {
    return direction->marked;
}

static uint64_t icmp_sent(const struct direction *direction) {
    return direction->icmp_sent;
}

static uint64_t cross_frames(const struct direction *direction) {
    return direction->cross.frames_in;
}

static uint64_t cross_bytes(const struct direction *direction) {
    return direction->cross.bytes_in;
}

static uint64_t cross_dropped(const struct direction *direction) {
    return direction->cross.dropped;
}

const struct direction_counter DIRECTION_COUNTERS[] = {
    {"cross_frames", cross_frames},   {"cross_bytes", cross_bytes},
    {"cross_dropped", cross_dropped}, {"policer_dropped", policer_dropped},
    {"corrupted", corrupted},         {"marked", marked},
    {"icmp_sent", icmp_sent},         {NULL, NULL},
};

// Whether the queue chooses the frame that is sent when the transmitter is free; else that is decided when it
// comes.
static bool chooses_at_turn(const struct direction_settings *settings) {
    return settings->queue != QUEUE_DROPTAIL && settings->queue != QUEUE_PIE;
}

void direction_init(struct direction *direction, const struct direction_settings *settings) {
    assert(settings->rate_bps > 0);
    assert((settings->queue_bytes != 0) + (settings->queue_packets != 0) + (settings->queue_ns != 0) == 1);
    assert(!settings->schedule.count || schedule_is_right(&settings->schedule));
    assert(!settings->queue_ns || settings->schedule.count);
    assert(jitter_is_right(&settings->jitter));
    assert(!settings->shaper_burst_bytes || !settings->schedule.count);
    assert(!settings->overtake_threshold ||
           (settings->overtake_by && settings->overtake_by <= OVERTAKING_MOST));
    memset(direction, 0, offsetof(struct direction, overtaking));
    if (settings->overtake_threshold)
        direction->overtaking = (struct overtaking){0};
    if (chooses_at_turn(settings))
        memset(&direction->managed, 0, sizeof direction->managed);
    direction->settings = *settings;
    direction->started_ns = NEVER;
    direction->draws_effects =
        settings->corrupt_threshold || settings->duplicate_threshold || settings->overtake_threshold;
    uint64_t longest = settings->mtu_bytes + ETHERNET_HEADER;
    if (settings->mtu_bytes && longest < settings->max_frame_size)
        direction->settings.max_frame_size = (uint32_t)longest;
    if (!settings->codel_target_ns)
        direction->settings.codel_target_ns = CODEL_TARGET_NS;
    direction->policer = bucket_of(settings->policer_bps, settings->policer_burst_bytes);
    direction->credit = bucket_of(settings->rate_bps, settings->shaper_burst_bytes);
    // A frame that overtakes has any share of the delay.
    if (!settings->overtake_threshold)
        direction->least_delay_ns = schedule_least_delay(&settings->schedule, settings->delay_ns);
}

void direction_lend(struct direction *direction, struct frame_pool *pool) {
    direction->pool = pool;
}

void direction_start(struct direction *direction, uint64_t now_ns) {
    if (now_ns != direction->started_ns)
        direction->is_scheduled = false;
    direction->started_ns = now_ns;
}

// A frame may have arrived before the start, and be handed in after it.
static bool is_out(const struct direction *direction, uint64_t now_ns) {
    if (now_ns < direction->started_ns)
        return false;
    uint64_t passed_ns = now_ns - direction->started_ns;
    return passed_ns >= direction->settings.outage_from_ns && passed_ns < direction->settings.outage_to_ns;
}

static bool has_schedule(const struct direction *direction, uint64_t now_ns) {
    return direction->settings.schedule.count && now_ns >= direction->started_ns;
}

// The step after the end of a schedule.
static struct schedule_step after_schedule(const struct direction *direction) {
    return (struct schedule_step){.rate_bps = direction->settings.rate_bps,
                                  .delay_ns = direction->settings.delay_ns};
}

static uint64_t schedule_time(const struct direction *direction, uint64_t time_ns) {
    return time_ns - direction->started_ns + direction->settings.schedule.offset_ns;
}

static void enter_queue(struct direction *direction, struct frame *frame, uint64_t now_ns) {
    frame->arrived_ns = now_ns;
    direction->queued_bytes += frame->length;
    direction->queued_packets++;
}

static void note_queue(struct direction *direction) {
    if (direction->queued_bytes > direction->max_queue_bytes)
        direction->max_queue_bytes = direction->queued_bytes;
    if (direction->queued_packets > direction->max_queue_packets)
        direction->max_queue_packets = direction->queued_packets;
}

static void leave_queue(struct direction *direction, const struct frame *frame) {
    direction->queued_bytes -= frame->length;
    direction->queued_packets--;
}

// Fractions of a nanosecond are carried over while the transmitter is busy, so that the rate has no error.
static uint64_t serialize(struct direction *direction, uint32_t length, uint64_t now_ns) {
    if (direction->transmitter_free_ns < now_ns) {
        if (direction->credit.capacity)
            bucket_fill(&direction->credit, direction->transmitter_free_ns, now_ns);
        direction->transmitter_free_ns = now_ns;
        direction->remainder = 0;
    }
    uint64_t work = length * 8 * NS_PER_S;
    if (direction->credit.level)
        work -= bucket_take_up_to(&direction->credit, work);
    uint64_t duration = work + direction->remainder;
    direction->transmitter_free_ns += duration / direction->settings.rate_bps;
    direction->remainder = duration % direction->settings.rate_bps;
    return direction->transmitter_free_ns;
}

// The same by the schedule. Writes the delay, too.
SELDOM static uint64_t serialize_scheduled(struct direction *direction, uint32_t length, uint64_t now_ns,
                                           uint64_t *delay_ns) {
    const struct schedule *schedule = &direction->settings.schedule;
    const struct schedule_step after = after_schedule(direction);
    struct schedule_sender *sender = &direction->sender;
    bool idle = direction->transmitter_free_ns < now_ns;
    if (idle || !direction->is_scheduled) {
        uint64_t begins_ns = schedule_time(direction, idle ? now_ns : direction->transmitter_free_ns);
        *sender = (struct schedule_sender){.free_ns = begins_ns, .place = schedule_find(schedule, begins_ns)};
        direction->is_scheduled = true;
    }
    schedule_send(schedule, &after, length, sender);
    *delay_ns = schedule_delay(schedule, &after, sender);
    uint64_t since_start_ns = sender->free_ns - schedule->offset_ns;
    return direction->transmitter_free_ns =
               sender->free_ns == NEVER ? NEVER : direction->started_ns + since_start_ns;
}

static void wait_for_transmitter(struct direction *direction, struct frame *frame) {
    frame->behind = NULL;
    if (direction->queue)
        direction->queue_tail->behind = frame;
    else
        direction->queue = frame;
    direction->queue_tail = frame;
}

// Whether a draw about a frame is below a threshold, which is 0 where nothing is drawn.
static bool happens(uint64_t threshold, uint64_t seed, uint64_t n) {
    return threshold && jitter_draw(seed, n) < threshold;
}

// Whether the frame overtakes others; then its exit is known.
static bool overtake(struct direction *direction, struct frame *frame) {
    const struct direction_settings *settings = &direction->settings;
    if (!happens(settings->overtake_threshold, settings->overtake_seed, frame->number))
        return false;
    uint64_t exit_ns =
        overtaking_exit(&direction->overtaking, frame->number, settings->overtake_by, frame->serialized_ns);
    if (exit_ns != NEVER)
        frame->exit_ns = exit_ns;
    return exit_ns != NEVER;
}

// The frame's own delay is over, and those before it have left unless it may overtake them.
static inline void follow(struct direction *direction, struct frame *frame, uint64_t delay_ns) {
    if (direction->settings.jitter.law)
        delay_ns += jitter_ns(&direction->settings.jitter, frame->number);
    frame->exit_ns = frame->serialized_ns == NEVER ? NEVER : frame->serialized_ns + delay_ns;
    if (frame->exit_ns < direction->last_exit_ns && !direction->settings.reorder)
        frame->exit_ns = direction->last_exit_ns;
    direction->last_exit_ns = frame->exit_ns;
}

// Its turn comes when the transmitter is free.
SELDOM static void mark_late(const struct direction *direction, struct frame *frame, uint64_t now_ns) {
    uint64_t free_ns = direction->transmitter_free_ns, begins_ns = free_ns > now_ns ? free_ns : now_ns;
    if (direction->settings.ecn && begins_ns - frame->arrived_ns >= direction->settings.ecn_threshold_ns)
        frame_mark(frame);
}

// The frame has the effects that draws of its number decide, and gets the time when it leaves.
SELDOM static void draw_effects(struct direction *direction, struct frame *frame, uint64_t delay_ns) {
    const struct direction_settings *settings = &direction->settings;
    if (happens(settings->corrupt_threshold, settings->corrupt_seed, frame->number))
        frame->effects |= EFFECT_CORRUPTION;
    if (happens(settings->duplicate_threshold, settings->duplicate_seed, frame->number))
        frame->effects |= EFFECT_COPY;
    if (!overtake(direction, frame))
        follow(direction, frame, delay_ns);
    if (settings->overtake_threshold)
        overtaking_note(&direction->overtaking, frame->number, frame->exit_ns);
}

static void transmit(struct direction *direction, struct frame *frame, uint64_t now_ns) {
    uint64_t delay_ns = direction->settings.delay_ns;
    if (direction->settings.ecn_threshold_ns)
        mark_late(direction, frame, now_ns);
    frame->serialized_ns = has_schedule(direction, now_ns)
                               ? serialize_scheduled(direction, frame->length, now_ns, &delay_ns)
                               : serialize(direction, frame->length, now_ns);
    if (frame->effects & EFFECT_CROSS) { // it goes somewhere else
        wait_for_transmitter(direction, frame);
        return;
    }
    frame->number = direction->sent++;
    if (direction->draws_effects)
        draw_effects(direction, frame, delay_ns);
    else
        follow(direction, frame, delay_ns);
    delay_line_add(&direction->line, frame);
    wait_for_transmitter(direction, frame);
}

// A frame is in the queue until its last bit has been sent.
static void leave_transmitter(struct direction *direction, uint64_t now_ns) {
    while (direction->queue && direction->queue->serialized_ns <= now_ns) {
        struct frame *frame = direction->queue;
        direction->queue = frame->behind;
        leave_queue(direction, frame);
        if (frame->effects & EFFECT_CROSS)
            frame_pool_return(direction->pool, frame);
    }
}

static void note_dropped(struct direction *direction, const struct frame *frame) {
    if (frame->effects & EFFECT_CROSS)
        direction->cross.dropped++;
    else
        direction->queue_dropped++;
}

// A frame waits no longer for its turn.
static void stop_waiting(struct direction *direction, const struct frame *frame) {
    direction->waiting--;
    direction->cross.waiting -= (frame->effects & EFFECT_CROSS) != 0;
}

// The queue drops frames that it had accepted.
static void drop_waiting(struct direction *direction, struct frames *frames) {
    for (struct frame *frame; (frame = frames_take(frames));) {
        stop_waiting(direction, frame);
        leave_queue(direction, frame);
        note_dropped(direction, frame);
        frames_append(&direction->dropped, frame);
    }
}

static void wait_for_turn(struct direction *direction, struct frame *frame, uint64_t now_ns) {
    direction->waiting++;
    direction->cross.waiting += (frame->effects & EFFECT_CROSS) != 0;
    direction->last_waiting_ns = now_ns;
    switch (direction->settings.queue) {
    case QUEUE_FQ_CODEL:
        return fq_codel_put(&direction->managed.fq_codel, frame);
    case QUEUE_DUALPI2:
        return dualpi2_put(&direction->managed.dualpi2, frame, now_ns);
    default:
        return codel_put(&direction->managed.codel, frame);
    }
}

static struct frame *choose(struct direction *direction, uint64_t turn_ns, struct frames *dropped) {
    const struct direction_settings *settings = &direction->settings;
    struct codel_law law = {settings->codel_target_ns, settings->max_frame_size, settings->ecn};
    switch (settings->queue) {
    case QUEUE_FQ_CODEL:
        return fq_codel_take(&direction->managed.fq_codel, turn_ns, &law, dropped);
    case QUEUE_DUALPI2:
        return dualpi2_take(&direction->managed.dualpi2, turn_ns, dropped);
    default:
        return codel_take(&direction->managed.codel, turn_ns, &law, dropped);
    }
}

// Sends the frame that the queue chooses at turn_ns: one, unless it drops all.
SELDOM static void take_turn(struct direction *direction, uint64_t turn_ns) {
    struct frames dropped = {0};
    leave_transmitter(direction, turn_ns);
    struct frame *frame = choose(direction, turn_ns, &dropped);
    drop_waiting(direction, &dropped);
    if (!frame)
        return;
    stop_waiting(direction, frame);
    transmit(direction, frame, turn_ns);
}

// All that happens to frames that have come, until now_ns.
static void serve_turns(struct direction *direction, uint64_t now_ns) {
    // While the transmitter is free, none waits but one that comes just now.
    while (direction->waiting && direction->transmitter_free_ns <= now_ns) {
        uint64_t came_ns = direction->last_waiting_ns, free_ns = direction->transmitter_free_ns;
        take_turn(direction, came_ns > free_ns ? came_ns : free_ns);
    }
    leave_transmitter(direction, now_ns);
}

static enum fate enter(struct direction *direction, struct frame *frame, uint64_t now_ns);

// Frames of cross traffic come until now_ns.
SELDOM static void take_cross(struct direction *direction, uint64_t now_ns) {
    const struct cross_settings *settings = &direction->settings.cross;
    if (direction->started_ns == NEVER || direction->started_ns > now_ns)
        return;
    for (uint64_t at_ns;
         (at_ns = cross_next(&direction->cross, settings, direction->started_ns)) <= now_ns;) {
        struct frame *frame = frame_pool_take(direction->pool);
        if (!frame)
            abort(); // a link that leaves them out would be another one
        frame->length = CROSS_FRAME_BYTES;
        frame->ecn = ECN_NOT_CAPABLE;
        frame->flow = CROSS_FLOW;
        frame->effects = EFFECT_CROSS;
        direction->cross.sent++;
        direction->cross.frames_in++;
        direction->cross.bytes_in += frame->length;
        serve_turns(direction, at_ns);
        if (enter(direction, frame, at_ns) != FATE_ACCEPTED)
            frame_pool_return(direction->pool, frame);
    }
}

// All that happens until now_ns.
static void serve_queue(struct direction *direction, uint64_t now_ns) {
    if (direction->settings.cross.bps)
        take_cross(direction, now_ns);
    serve_turns(direction, now_ns);
}

// The bytes of a queue whose limit is a time.
static uint64_t timed_queue_bytes(const struct direction *direction, uint64_t now_ns) {
    const struct schedule *schedule = &direction->settings.schedule;
    struct schedule_step step = after_schedule(direction);
    if (has_schedule(direction, now_ns))
        step = *schedule_at(schedule, schedule_find(schedule, schedule_time(direction, now_ns)), &step);
    unsigned __int128 work = (unsigned __int128)step.rate_bps * direction->settings.queue_ns;
    uint64_t bytes = (uint64_t)(work / (8 * NS_PER_S));
    return bytes > LEAST_QUEUE_BYTES ? bytes : LEAST_QUEUE_BYTES;
}

// Whether what is in the queue is within its limit, with so much more.
static inline bool queue_has_room(const struct direction *direction, uint64_t packets, uint64_t bytes,
                                  uint64_t now_ns) {
    if (direction->settings.queue_ns)
        return direction->queued_bytes + bytes <= timed_queue_bytes(direction, now_ns);
    if (direction->settings.queue_bytes)
        return direction->queued_bytes + bytes <= direction->settings.queue_bytes;
    return direction->queued_packets + packets <= direction->settings.queue_packets;
}

// Drops what is longest until all is within the limit.
static void evict(struct direction *direction, uint64_t now_ns) {
    struct frames dropped = {0};
    while (direction->waiting && !queue_has_room(direction, 0, 0, now_ns)) {
        fq_codel_evict(&direction->managed.fq_codel, &dropped);
        drop_waiting(direction, &dropped);
    }
}

// Whether PIE drops the frame that comes; it may mark it.
static bool pie_drops(struct direction *direction, struct frame *frame, uint64_t now_ns) {
    bool can_be_marked = direction->settings.ecn && frame->ecn != ECN_NOT_CAPABLE;
    enum pie_verdict verdict =
        pie_judge(&direction->pie, now_ns, direction->transmitter_free_ns, direction->queued_bytes,
                  jitter_draw(direction->settings.pie_seed, direction->judged++), can_be_marked);
    if (verdict == PIE_MARKS)
        frame_mark(frame);
    return verdict == PIE_DROPS;
}

static enum fate refuse(struct direction *direction, const struct frame *frame) {
    note_dropped(direction, frame);
    return FATE_QUEUE_FULL;
}

SELDOM static enum fate enter_managed(struct direction *direction, struct frame *frame, uint64_t now_ns) {
    enum queue queue = direction->settings.queue;
    bool evicts = queue == QUEUE_FQ_CODEL, is_chosen = chooses_at_turn(&direction->settings);
    if (!evicts && !queue_has_room(direction, 1, frame->length, now_ns))
        return refuse(direction, frame);
    if (queue == QUEUE_PIE && pie_drops(direction, frame, now_ns))
        return refuse(direction, frame);
    enter_queue(direction, frame, now_ns);
    if (is_chosen)
        wait_for_turn(direction, frame, now_ns);
    if (evicts)
        evict(direction, now_ns);
    note_queue(direction);
    if (is_chosen)
        serve_turns(direction, now_ns);
    else
        transmit(direction, frame, now_ns);
    return FATE_ACCEPTED;
}

// The queue has been served until now_ns.
static inline enum fate enter(struct direction *direction, struct frame *frame, uint64_t now_ns) {
    if (direction->settings.queue != QUEUE_DROPTAIL)
        return enter_managed(direction, frame, now_ns);
    if (!queue_has_room(direction, 1, frame->length, now_ns))
        return refuse(direction, frame);
    enter_queue(direction, frame, now_ns);
    note_queue(direction);
    transmit(direction, frame, now_ns);
    return FATE_ACCEPTED;
}

enum fate direction_arrive(struct direction *direction, struct frame *frame, uint64_t now_ns) {
    direction->frames_in++;
    direction->bytes_in += frame->length;
    if (frame->length > direction->settings.max_frame_size) {
        direction->oversize_dropped++;
        return FATE_OVERSIZE;
    }
    if (is_out(direction, now_ns)) {
        direction->outage_dropped++;
        return FATE_OUTAGE;
    }
    if (direction->settings.policer_bps && !bucket_takes(&direction->policer, frame->length, now_ns)) {
        direction->policer_dropped++;
        return FATE_POLICED;
    }
    serve_queue(direction, now_ns);
    return enter(direction, frame, now_ns);
}

static bool may_overtake(const struct direction *direction) {
    return direction->settings.reorder || direction->settings.overtake_threshold;
}

// Whether frames may wait for their turn while none before them has an exit: where frames may overtake, one
// whose turn has not come may leave before all others, and one of cross traffic in the transmitter never
// exits.
static bool may_wait_alone(const struct direction *direction) {
    return may_overtake(direction) || direction->settings.cross.bps;
}

// Then this is when the next turn has come for sure.
static uint64_t next_turn(const struct direction *direction) {
    if (!may_wait_alone(direction) || !direction->waiting ||
        direction->transmitter_free_ns >= NEVER - direction->least_delay_ns)
        return NEVER;
    return direction->transmitter_free_ns + direction->least_delay_ns;
}

uint64_t direction_next_exit(const struct direction *direction) {
    const struct frame *frame = delay_line_first(&direction->line);
    uint64_t exit_ns = frame ? frame->exit_ns : NEVER, turn_ns = next_turn(direction);
    return turn_ns < exit_ns ? turn_ns : exit_ns;
}

// Counts the effects of a frame that leaves, and says whether it is a copy that does.
SELDOM static bool leaves_as_copy(struct direction *direction, struct frame *frame) {
    direction->corrupted += frame_is_unreadable(frame);
    direction->marked += (frame->effects & EFFECT_MARK) != 0;
    if (!(frame->effects & EFFECT_COPY))
        return false;
    frame->effects ^= EFFECT_COPY | EFFECT_LEAVES_AGAIN;
    direction->frames_in++;
    direction->bytes_in += frame->length;
    return true;
}

struct frame *direction_exit(struct direction *direction, uint64_t now_ns) {
    // A frame that is due now was sent the least delay ago. Later frames may not have been handed in yet.
    if (may_wait_alone(direction) && direction->waiting && now_ns >= direction->least_delay_ns)
        serve_queue(direction, now_ns - direction->least_delay_ns);
    struct frame *frame = delay_line_first(&direction->line);
    if (!frame || frame->exit_ns > now_ns)
        return NULL;
    // With a short delay, it may leave before the next arrival serves the queue. While frames wait, another
    // one is in the transmitter: with that one's exit, the next turn has come.
    serve_queue(direction, frame->serialized_ns);
    if (!frame->effects || !leaves_as_copy(direction, frame))
        delay_line_take(&direction->line);
    direction->frames_out++;
    direction->bytes_out += frame->length;
    return frame;
}

void direction_end_cross(struct direction *direction) {
    direction_start(direction, NEVER);
    leave_transmitter(direction, NEVER);
    if (direction->transmitter_free_ns == NEVER)
        direction->transmitter_free_ns = 0;
}

struct frame *direction_dropped(struct direction *direction) {
    struct frame *frame;
    while ((frame = frames_take(&direction->dropped)) && frame->effects & EFFECT_CROSS)
        frame_pool_return(direction->pool, frame);
    return frame;
}

// Counted one by one.
static uint64_t count_waiting(const struct direction *direction) {
    switch (direction->settings.queue) {
    case QUEUE_CODEL:
        return frames_count(&direction->managed.codel.frames);
    case QUEUE_FQ_CODEL:
        return fq_codel_count(&direction->managed.fq_codel);
    case QUEUE_DUALPI2:
        return frames_count(&direction->managed.dualpi2.l4s.frames) +
               frames_count(&direction->managed.dualpi2.classic.frames);
    default:
        return 0;
    }
}

uint64_t direction_in_flight(const struct direction *direction) {
    return delay_line_count(&direction->line) + count_waiting(direction) - direction->cross.waiting;
}

bool direction_conserves(const struct direction *direction) {
    uint64_t dropped = direction->queue_dropped + direction->oversize_dropped + direction->outage_dropped +
                       direction->policer_dropped;
    return direction->frames_in == direction->frames_out + dropped + direction_in_flight(direction);
}
