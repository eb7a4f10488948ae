#include "stream.h"

#include <stdlib.h>
#include <time.h>

uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * SECOND + (uint64_t)time.tv_nsec;
}

struct stream *add_stream(struct stream **first, const struct assignment *assignment, int64_t id,
                          uint64_t size_bytes) {
    struct stream *stream = calloc(1, sizeof *stream), **last = first;
    if (stream == NULL)
        fail(EXIT_FAILURE, "there is no memory for a stream");
    begin_transfer(&stream->transfer, assignment, size_bytes);
    stream->id = id;
    stream->times[0] = now();
    while (*last != NULL)
        last = &(*last)->next;
    return *last = stream;
}

struct stream *find_stream(struct stream *first, int64_t id) {
    while (first != NULL && first->id != id)
        first = first->next;
    return first;
}

static void remove_at(struct stream **place) {
    struct stream *stream = *place;
    *place = stream->next;
    end_transfer(&stream->transfer);
    free(stream);
}

void remove_stream(struct stream **first, int64_t id) {
    while (*first != NULL && (*first)->id != id)
        first = &(*first)->next;
    if (*first != NULL)
        remove_at(first);
}

void remove_streams(struct stream **first) {
    while (*first != NULL)
        remove_at(first);
}

const char *take_from_stream(struct stream *stream, const uint8_t *data, size_t length, bool is_end) {
    if (stream->times[1] == 0)
        stream->times[1] = now();
    const char *problem = take(&stream->transfer, data, length, is_end);
    if (stream->transfer.is_over)
        stream->times[2] = now();
    return problem;
}

struct stream *next_sender(struct stream *first, const struct stream *last) {
    struct stream *stream = last == NULL ? first : last->next;
    while (stream != NULL && (stream->id < 0 || !has_pending(&stream->transfer)))
        stream = stream->next;
    return stream;
}
