// FQ-CoDel, the flow queue of RFC 8290: each flow has a queue with a CoDel of its own, and queues take turns
// by their bytes (deficit round robin). A flow that was idle comes before the others, once. With the RFC's
// values: 1024 queues, and a quantum of a full frame.
//
// A queue belongs to one flow as long as one of eight is to be had, so that flows share none by chance.
#pragma once

#include <stdint.h>

#include "codel.h"
#include "frame_pool.h"

enum { FQ_FLOWS = 1024, FQ_QUANTUM_BYTES = 1514, FQ_WAYS = 8, FQ_MOST_EVICTED = 64 };

struct fq_flow {
    struct fq_flow *next; // of the list that it is in
    struct codel_queue queue;
    int64_t deficit;
    uint32_t key;
    bool is_taken;  // by the flow of this key
    bool is_active; // in a list
};

struct fq_list {
    struct fq_flow *head, *tail;
};

struct fq_codel {
    struct fq_list fresh, old; // flows whose turns come
    struct fq_flow flows[FQ_FLOWS];
};

static inline void fq_append(struct fq_list *list, struct fq_flow *flow) {
    flow->next = NULL;
    if (list->tail)
        list->tail->next = flow;
    else
        list->head = flow;
    list->tail = flow;
}

static inline void fq_take_first(struct fq_list *list) {
    list->head = list->head->next;
    if (!list->head)
        list->tail = NULL;
}

// The queue of a flow: its own, else one that nobody has, else one that is idle. Where all eight are busy, it
// is shared.
static inline struct fq_flow *fq_flow_of_key(struct fq_codel *fq, uint32_t key) {
    struct fq_flow *unused = NULL, *idle = NULL, *first = &fq->flows[key % FQ_FLOWS];
    for (uint32_t way = 0; way < FQ_WAYS; way++) {
        struct fq_flow *flow = &fq->flows[(key + way) % FQ_FLOWS];
        if (flow->is_taken && flow->key == key)
            return flow;
        if (!unused && !flow->is_taken)
            unused = flow;
        if (!idle && !flow->is_active)
            idle = flow;
    }
    struct fq_flow *flow = unused ? unused : idle;
    if (!flow)
        return first;
    *flow = (struct fq_flow){.key = key, .is_taken = true};
    return flow;
}

static inline void fq_codel_put(struct fq_codel *fq, struct frame *frame) {
    struct fq_flow *flow = fq_flow_of_key(fq, frame->flow);
    codel_put(&flow->queue, frame);
    if (flow->is_active)
        return;
    flow->is_active = true;
    flow->deficit = FQ_QUANTUM_BYTES;
    fq_append(&fq->fresh, flow);
}

// The first flow has no frame: behind the old ones, a fresh one waits for its next, so that nobody who is
// idle for a moment comes first again (4.2).
static inline void fq_meet_empty(struct fq_codel *fq, struct fq_list *list, struct fq_flow *flow) {
    fq_take_first(list);
    if (list == &fq->fresh && fq->old.head)
        fq_append(&fq->old, flow);
    else
        flow->is_active = false;
}

// The frame that is sent at now_ns, or NULL; those that CoDel drops before it are appended to `dropped`.
static inline struct frame *fq_codel_take(struct fq_codel *fq, uint64_t now_ns, const struct codel_law *law,
                                          struct frames *dropped) {
    for (;;) {
        struct fq_list *list = fq->fresh.head ? &fq->fresh : &fq->old;
        struct fq_flow *flow = list->head;
        if (!flow)
            return NULL;
        if (flow->deficit <= 0) {
            flow->deficit += FQ_QUANTUM_BYTES;
            fq_take_first(list);
            fq_append(&fq->old, flow);
            continue;
        }
        struct frame *frame = codel_take(&flow->queue, now_ns, law, dropped);
        if (frame) {
            flow->deficit -= frame->length;
            return frame;
        }
        fq_meet_empty(fq, list, flow);
    }
}

// Drops from the head of the queue with most bytes (4.1): half of its frames, and 64 at most.
static inline void fq_codel_evict(struct fq_codel *fq, struct frames *dropped) {
    struct fq_flow *fattest = fq->flows;
    for (struct fq_flow *flow = fq->flows; flow < fq->flows + FQ_FLOWS; flow++)
        if (flow->queue.bytes > fattest->queue.bytes)
            fattest = flow;
    uint64_t half = (frames_count(&fattest->queue.frames) + 1) / 2;
    for (uint64_t n = half < FQ_MOST_EVICTED ? half : FQ_MOST_EVICTED; n; n--) {
        struct frame *frame = frames_take(&fattest->queue.frames);
        fattest->queue.bytes -= frame->length;
        frames_append(dropped, frame);
    }
}

// Counted one by one.
static inline uint64_t fq_codel_count(const struct fq_codel *fq) {
    uint64_t count = 0;
    for (const struct fq_flow *flow = fq->flows; flow < fq->flows + FQ_FLOWS; flow++)
        count += frames_count(&flow->queue.frames);
    return count;
}
