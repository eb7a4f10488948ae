// The data of one stream, over hq-interop: a request line, content, an answer. It knows nothing of QUIC.
#ifndef TRANSFER_H
#define TRANSFER_H

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>
#include <sys/uio.h>

#include "contract.h"
#include "tls.h"

struct transfer {
    const struct assignment *assignment;
    uint64_t size_bytes;
    uint8_t *content; // of so many bytes; it stays where it is until the stream is closed

    char asked[64]; // the line that the server has read
    size_t asked_length;
    struct hash *hash; // of what a server gets in an upload
    uint64_t received; // bytes of content or answer
    char answer[65];   // of the server to an upload, as the client has it

    char line[80]; // what is sent first
    size_t line_length;
    uint64_t content_length; // what is sent then
    uint64_t sent;           // of both
    bool may_send;
    bool has_sent_end;
    bool is_over; // a client has all, and it is right
};

// A client's transfer of so many bytes; a server learns how many from the client.
void begin_transfer(struct transfer *transfer, const struct assignment *assignment, uint64_t size_bytes);

// Bytes have come, in order; `is_end`: they are the last. A description of what is wrong with them, or NULL.
const char *take(struct transfer *transfer, const uint8_t *data, size_t length, bool is_end);

// Fills `pieces` with the next data to send, and returns how many there are.
int pending(const struct transfer *transfer, struct iovec pieces[2]);
bool has_pending(const struct transfer *transfer);
void count_sent(struct transfer *transfer, size_t length);

void end_transfer(struct transfer *transfer);

#endif
