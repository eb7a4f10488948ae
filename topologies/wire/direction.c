#include "direction.h"

#include <assert.h>

#define NS_PER_S 1000000000ull

void direction_init(struct direction *direction, const struct direction_settings *settings) {
    assert(settings->rate_bps > 0);
    assert((settings->queue_bytes == 0) != (settings->queue_packets == 0));
    *direction = (struct direction){.settings = *settings};
}

// A frame is in the queue until its last bit has been sent.
static void serve_queue(struct direction *direction, uint64_t now_ns) {
    while (direction->queue && direction->queue->serialized_ns <= now_ns) {
        direction->queued_bytes -= direction->queue->length;
        direction->queued_packets--;
        direction->queue = direction->queue->next;
    }
}

static bool queue_has_room(const struct direction *direction, uint32_t length) {
    if (direction->settings.queue_bytes)
        return direction->queued_bytes + length <= direction->settings.queue_bytes;
    return direction->queued_packets < direction->settings.queue_packets;
}

// Fractions of a nanosecond are carried over while the transmitter is busy, so that the rate has no error.
static uint64_t serialize(struct direction *direction, uint32_t length, uint64_t now_ns) {
    if (direction->transmitter_free_ns < now_ns) {
        direction->transmitter_free_ns = now_ns;
        direction->remainder = 0;
    }
    uint64_t duration = length * 8 * NS_PER_S + direction->remainder;
    direction->transmitter_free_ns += duration / direction->settings.rate_bps;
    direction->remainder = duration % direction->settings.rate_bps;
    return direction->transmitter_free_ns;
}

static void append(struct direction *direction, struct frame *frame) {
    frame->next = NULL;
    if (direction->tail)
        direction->tail->next = frame;
    else
        direction->head = frame;
    direction->tail = frame;
    if (!direction->queue)
        direction->queue = frame;
    direction->queued_bytes += frame->length;
    direction->queued_packets++;
    if (direction->queued_bytes > direction->max_queue_bytes)
        direction->max_queue_bytes = direction->queued_bytes;
    if (direction->queued_packets > direction->max_queue_packets)
        direction->max_queue_packets = direction->queued_packets;
}

enum fate direction_arrive(struct direction *direction, struct frame *frame, uint64_t now_ns) {
    direction->frames_in++;
    direction->bytes_in += frame->length;
    if (frame->length > direction->settings.max_frame_size) {
        direction->oversize_dropped++;
        return FATE_OVERSIZE;
    }
    serve_queue(direction, now_ns);
    if (!queue_has_room(direction, frame->length)) {
        direction->queue_dropped++;
        return FATE_QUEUE_FULL;
    }
    frame->serialized_ns = serialize(direction, frame->length, now_ns);
    frame->exit_ns = frame->serialized_ns + direction->settings.delay_ns;
    append(direction, frame);
    return FATE_ACCEPTED;
}

uint64_t direction_next_exit(const struct direction *direction) {
    return direction->head ? direction->head->exit_ns : NEVER;
}

struct frame *direction_exit(struct direction *direction, uint64_t now_ns) {
    struct frame *frame = direction->head;
    if (!frame || frame->exit_ns > now_ns)
        return NULL;
    // With a short delay, it may leave before the next arrival serves the queue.
    serve_queue(direction, frame->serialized_ns);
    direction->head = frame->next;
    if (!direction->head)
        direction->tail = NULL;
    direction->frames_out++;
    direction->bytes_out += frame->length;
    return frame;
}

uint64_t direction_in_flight(const struct direction *direction) {
    uint64_t frames = 0;
    for (const struct frame *frame = direction->head; frame; frame = frame->next)
        frames++;
    return frames;
}

bool direction_conserves(const struct direction *direction) {
    uint64_t dropped = direction->queue_dropped + direction->oversize_dropped;
    return direction->frames_in == direction->frames_out + dropped + direction_in_flight(direction);
}
