// The TLS library: TLS 1.3 for QUIC, SHA-256 and random bytes. No other file knows which it is.
#ifndef TLS_H
#define TLS_H

#include <stddef.h>
#include <stdint.h>

#include "contract.h"

enum { HASH_BYTES = 32 };

struct credentials; // the keys and certificates of one end
struct session;     // of one connection
struct hash;        // SHA-256 of what comes bit by bit

// Ends the program when they cannot be read.
struct credentials *read_credentials(const struct assignment *assignment);

// A session that a server begins with the assignment's certificate, and in which a client verifies it. The
// QUIC library finds its connection by `reference`.
struct session *new_session(const struct assignment *assignment, struct credentials *credentials,
                            void *reference);
void free_session(struct session *session); // where the QUIC library does not do that itself

// Why the client does not take the server's certificate; NULL where that is not what was wrong.
const char *certificate_problem(struct session *session);

struct hash *new_hash(void);
void hash_more(struct hash *hash, const uint8_t *data, size_t length);

// The hash of all that came, unless `result` is NULL; nothing is left of it.
void end_hash(struct hash *hash, uint8_t result[HASH_BYTES]);

void fill_randomly(uint8_t *bytes, size_t length);

#endif
