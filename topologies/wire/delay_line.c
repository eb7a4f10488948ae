#include "delay_line.h"

static bool leaves_before(const struct frame *one, const struct frame *other) {
    return one->exit_ns != other->exit_ns ? one->exit_ns < other->exit_ns : one->number < other->number;
}

// One heap of two. In a heap, `next` is the next child of the same parent.
static struct frame *meld(struct frame *one, struct frame *other) {
    if (!one || !other)
        return one ? one : other;
    struct frame *above = leaves_before(one, other) ? one : other, *below = above == one ? other : one;
    below->parent = above;
    below->next = above->child;
    above->child = below;
    return above;
}

// One heap of all children, by pairs from the left and then from the right.
static struct frame *meld_children(struct frame *first) {
    struct frame *pairs = NULL, *heap = NULL;
    while (first) {
        struct frame *one = first, *other = one->next;
        first = other ? other->next : NULL;
        one->next = NULL;
        if (other)
            other->next = NULL;
        struct frame *pair = meld(one, other);
        pair->next = pairs;
        pairs = pair;
    }
    while (pairs) {
        struct frame *pair = pairs;
        pairs = pair->next;
        pair->next = NULL;
        heap = meld(heap, pair);
    }
    if (heap)
        heap->parent = NULL;
    return heap;
}

void delay_line_add(struct delay_line *line, struct frame *frame) {
    frame->child = frame->parent = frame->next = NULL;
    if (line->in_order.tail && leaves_before(frame, line->in_order.tail)) {
        line->overtaking = meld(line->overtaking, frame);
        return;
    }
    frames_append(&line->in_order, frame);
}

struct frame *delay_line_first(const struct delay_line *line) {
    struct frame *one = line->in_order.head, *other = line->overtaking;
    if (!one || !other)
        return one ? one : other;
    return leaves_before(one, other) ? one : other;
}

struct frame *delay_line_take(struct delay_line *line) {
    struct frame *frame = delay_line_first(line);
    if (frame != line->overtaking)
        return frames_take(&line->in_order);
    if (frame)
        line->overtaking = meld_children(frame->child);
    return frame;
}

uint64_t delay_line_count(const struct delay_line *line) {
    uint64_t count = frames_count(&line->in_order);
    for (const struct frame *frame = line->overtaking; frame;) {
        count++;
        if (frame->child) {
            frame = frame->child;
            continue;
        }
        while (frame && !frame->next)
            frame = frame->parent;
        frame = frame ? frame->next : NULL;
    }
    return count;
}
