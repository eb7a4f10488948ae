#include "transfer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "content.h"

// A server keeps the content of each answer in memory.
static const uint64_t LARGEST_BYTES = 1ull << 30;

static const char *REQUESTS[] = {"GET", "PUT"};

static void hash_text(const uint8_t hash[HASH_BYTES], char text[HASH_TEXT_BYTES + 1]) {
    for (int i = 0; i < HASH_BYTES; i++)
        snprintf(text + 2 * i, 3, "%02x", hash[i]);
}

static void have_content(struct transfer *transfer, uint64_t size_bytes) {
    transfer->size_bytes = size_bytes;
    transfer->content = make_content(transfer->assignment->content_seed, size_bytes);
    if (transfer->content == NULL)
        fail(EXIT_FAILURE, "there is no memory for %" PRIu64 " bytes", size_bytes);
}

void begin_transfer(struct transfer *transfer, const struct assignment *assignment, uint64_t size_bytes) {
    *transfer = (struct transfer){.assignment = assignment};
    if (assignment->is_server) {
        transfer->hash = new_hash();
        return;
    }
    have_content(transfer, size_bytes);
    const char *request = REQUESTS[assignment->is_upload];
    transfer->line_length =
        (size_t)snprintf(transfer->line, sizeof transfer->line, "%s /%" PRIu64 "\r\n", request, size_bytes);
    transfer->content_length = assignment->is_upload ? size_bytes : 0;
    transfer->may_send = true;
}

static const char *answer_request(struct transfer *transfer) {
    uint64_t size;
    if (sscanf(transfer->asked, "GET /%" SCNu64 "\r\n", &size) != 1 || size > LARGEST_BYTES)
        return "the client asks for something else than the content";
    have_content(transfer, size);
    transfer->content_length = size;
    transfer->may_send = true;
    return NULL;
}

static const char *answer_hash(struct transfer *transfer) {
    uint8_t hash[HASH_BYTES];
    end_hash(transfer->hash, hash);
    transfer->hash = NULL;
    hash_text(hash, transfer->line);
    transfer->line_length = HASH_TEXT_BYTES;
    transfer->may_send = true;
    return NULL;
}

static const char *take_as_server(struct transfer *transfer, const uint8_t *data, size_t length,
                                  bool is_end) {
    bool has_line = transfer->asked_length && transfer->asked[transfer->asked_length - 1] == '\n';
    while (length && !has_line) {
        if (transfer->asked_length == sizeof transfer->asked - 1)
            return "the client's line is too long";
        has_line = *data == '\n';
        transfer->asked[transfer->asked_length++] = (char)*data++;
        length--;
    }
    hash_more(transfer->hash, data, length);
    if (!is_end)
        return NULL;
    return strncmp(transfer->asked, "PUT ", 4) == 0 ? answer_hash(transfer) : answer_request(transfer);
}

static const char *take_as_client(struct transfer *transfer, const uint8_t *data, size_t length,
                                  bool is_end) {
    const struct assignment *assignment = transfer->assignment;
    uint8_t hash[HASH_BYTES];
    if (assignment->is_upload && transfer->answer[0] == '\0') {
        struct hash *of_content = new_hash();
        hash_more(of_content, transfer->content, transfer->size_bytes);
        end_hash(of_content, hash);
        hash_text(hash, transfer->answer);
    }
    const void *right = assignment->is_upload ? (const void *)transfer->answer : transfer->content;
    uint64_t size = assignment->is_upload ? HASH_TEXT_BYTES : transfer->size_bytes;
    if (length > size - transfer->received ||
        memcmp((const uint8_t *)right + transfer->received, data, length) != 0)
        return assignment->is_upload ? "the server got other content" : "the content is wrong";
    transfer->received += length;
    if (is_end && transfer->received < size)
        return "the server has sent too little";
    transfer->is_over = is_end;
    return NULL;
}

const char *take(struct transfer *transfer, const uint8_t *data, size_t length, bool is_end) {
    return transfer->assignment->is_server ? take_as_server(transfer, data, length, is_end)
                                           : take_as_client(transfer, data, length, is_end);
}

bool has_pending(const struct transfer *transfer) {
    return transfer->may_send && !transfer->has_sent_end;
}

int pending(const struct transfer *transfer, struct iovec pieces[2]) {
    int count = 0;
    uint64_t of_content = 0;
    if (transfer->sent < transfer->line_length)
        pieces[count++] =
            (struct iovec){(char *)transfer->line + transfer->sent, transfer->line_length - transfer->sent};
    else
        of_content = transfer->sent - transfer->line_length;
    if (of_content < transfer->content_length)
        pieces[count++] =
            (struct iovec){(uint8_t *)transfer->content + of_content, transfer->content_length - of_content};
    return count;
}

void count_sent(struct transfer *transfer, size_t length) {
    transfer->sent += length;
    transfer->has_sent_end = transfer->sent == transfer->line_length + transfer->content_length;
}

void end_transfer(struct transfer *transfer) {
    if (transfer->hash != NULL)
        end_hash(transfer->hash, NULL);
    free(transfer->content);
}
