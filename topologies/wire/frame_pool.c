#include "frame_pool.h"

#include <stdlib.h>
#include <string.h>

enum { FRAMES_PER_CHUNK = 1024 };

struct frame_chunk {
    struct frame_chunk *next;
    _Alignas(struct frame) uint8_t memory[];
};

void frames_append(struct frames *frames, struct frame *frame) {
    frame->next = NULL;
    if (frames->tail)
        frames->tail->next = frame;
    else
        frames->head = frame;
    frames->tail = frame;
}

struct frame *frames_take(struct frames *frames) {
    struct frame *frame = frames->head;
    if (!frame)
        return NULL;
    frames->head = frame->next;
    if (!frames->head)
        frames->tail = NULL;
    return frame;
}

uint64_t frames_count(const struct frames *frames) {
    uint64_t count = 0;
    for (const struct frame *frame = frames->head; frame; frame = frame->next)
        count++;
    return count;
}

void frame_pool_init(struct frame_pool *pool, uint32_t frame_capacity) {
    *pool = (struct frame_pool){.frame_capacity = frame_capacity};
}

bool frame_pool_grow(struct frame_pool *pool) {
    size_t alignment = _Alignof(struct frame);
    size_t stride = (sizeof(struct frame) + pool->frame_capacity + alignment - 1) / alignment * alignment;
    size_t size = sizeof(struct frame_chunk) + FRAMES_PER_CHUNK * stride;
    struct frame_chunk *chunk = malloc(size);
    if (!chunk)
        return false;
    memset(chunk, 0, size); // page faults now, not when a frame is in a hurry
    chunk->next = pool->chunks;
    pool->chunks = chunk;
    for (size_t i = 0; i < FRAMES_PER_CHUNK; i++)
        frame_pool_return(pool, (struct frame *)(chunk->memory + i * stride));
    return true;
}

struct frame *frame_pool_take(struct frame_pool *pool) {
    if (!pool->free && !frame_pool_grow(pool))
        return NULL;
    struct frame *frame = pool->free;
    pool->free = frame->next;
    frame->next = NULL;
    return frame;
}

void frame_pool_return(struct frame_pool *pool, struct frame *frame) {
    if (frame->effects & EFFECT_LEAVES_AGAIN) {
        frame->effects ^= EFFECT_LEAVES_AGAIN;
        return;
    }
    frame->effects = 0;
    frame->next = pool->free;
    pool->free = frame;
}

void frame_pool_free(struct frame_pool *pool) {
    while (pool->chunks) {
        struct frame_chunk *chunk = pool->chunks;
        pool->chunks = chunk->next;
        free(chunk);
    }
    pool->free = NULL;
}
