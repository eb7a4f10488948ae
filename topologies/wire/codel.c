#include "codel.h"

#include <math.h>

// A dropping state that begins so soon after the last one begins at its rate of drops.
#define RECENT_NS (16 * CODEL_INTERVAL_NS)

static uint64_t next_drop(uint64_t time_ns, uint64_t drops) {
    return time_ns + (uint64_t)((double)CODEL_INTERVAL_NS / sqrt((double)drops));
}

static bool waits_too_long(struct codel *codel, uint64_t now_ns, bool above) {
    if (!above)
        codel->first_above_ns = 0;
    else if (!codel->first_above_ns)
        codel->first_above_ns = now_ns + CODEL_INTERVAL_NS;
    else
        return now_ns >= codel->first_above_ns;
    return false;
}

static void begin_dropping(struct codel *codel, uint64_t now_ns) {
    uint64_t more = codel->drops - codel->last_drops;
    bool is_recent = now_ns < codel->drop_next_ns + RECENT_NS;
    codel->drops = codel->last_drops = more > 1 && is_recent ? more : 1;
    codel->drop_next_ns = next_drop(now_ns, codel->drops);
    codel->dropping = true;
}

static bool drop_in_dropping_state(struct codel *codel, uint64_t now_ns, bool too_long) {
    if (!too_long)
        codel->dropping = false;
    else if (codel->turn == TURN_NEXT_DROP)
        codel->drop_next_ns = next_drop(codel->drop_next_ns, codel->drops);
    bool drops = codel->dropping && now_ns >= codel->drop_next_ns;
    codel->drops += drops;
    codel->turn = drops ? TURN_NEXT_DROP : TURN_BEGINS;
    return drops;
}

static bool drops(struct codel *codel, uint64_t now_ns, bool above) {
    bool too_long = waits_too_long(codel, now_ns, above);
    if (codel->turn == TURN_FIRST_DROP) {
        begin_dropping(codel, now_ns);
        codel->turn = TURN_BEGINS;
        return false;
    }
    if (codel->dropping)
        return drop_in_dropping_state(codel, now_ns, too_long);
    codel->turn = too_long ? TURN_FIRST_DROP : TURN_BEGINS;
    return too_long;
}

// The head is marked in the place of being dropped: it is sent, and no other is asked for.
static void mark_head(struct codel *codel, uint64_t now_ns) {
    if (codel->turn == TURN_FIRST_DROP)
        begin_dropping(codel, now_ns);
    else
        codel->drop_next_ns = next_drop(codel->drop_next_ns, codel->drops);
    codel->turn = TURN_BEGINS;
}

void codel_put(struct codel_queue *queue, struct frame *frame) {
    queue->bytes += frame->length;
    frames_append(&queue->frames, frame);
}

struct frame *codel_take(struct codel_queue *queue, uint64_t now_ns, const struct codel_law *law,
                         struct frames *dropped) {
    for (struct frame *frame; (frame = frames_take(&queue->frames));) {
        queue->bytes -= frame->length;
        bool above = now_ns - frame->arrived_ns >= law->target_ns && queue->bytes > law->max_frame_size;
        if (!drops(&queue->codel, now_ns, above))
            return frame;
        if (law->marks && frame_mark(frame)) {
            mark_head(&queue->codel, now_ns);
            return frame;
        }
        frames_append(dropped, frame);
    }
    drops(&queue->codel, now_ns, false); // there is no head to judge
    return NULL;
}
