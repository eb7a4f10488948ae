// The streams of a connection, in the order in which they began. It knows nothing of QUIC.
#ifndef STREAM_H
#define STREAM_H

#include "transfer.h"

enum { MILLISECOND = 1000000, SECOND = 1000 * MILLISECOND }; // in nanoseconds

// A stream, and what crosses it. A client keeps one that is over; a server forgets it.
struct stream {
    int64_t id; // -1: none yet
    struct stream *next;
    struct transfer transfer;
    uint64_t times[3]; // of a client: when it was asked for, when its first byte came, and its last
    bool is_said;
};

// Nanoseconds of CLOCK_MONOTONIC.
uint64_t now(void);

struct stream *add_stream(struct stream **first, const struct assignment *assignment, int64_t id,
                          uint64_t size_bytes);
struct stream *find_stream(struct stream *first, int64_t id);
void remove_stream(struct stream **first, int64_t id);
void remove_streams(struct stream **first);

// Bytes have come, as transfer.h's `take` has them, and the time is noted.
const char *take_from_stream(struct stream *stream, const uint8_t *data, size_t length, bool is_end);

// The next stream behind `last` that has something to send; from the first one, where `last` is NULL.
struct stream *next_sender(struct stream *first, const struct stream *last);

#endif
