// A QUIC connection with its streams, and what is counted of all connections. connection.c alone knows whose
// library it is.
#ifndef CONNECTION_H
#define CONNECTION_H

#include "stream.h"
#include "tls.h"

struct counters {
    uint64_t packets_sent, packets_received, packets_lost, bytes_sent, bytes_received;
    double smoothed_rtt_ms;
    bool counts_lost_acks; // packets_lost is left out: it has packets with nothing but ACKs, too
};

struct endpoint {
    const struct assignment *assignment;
    struct credentials *credentials;
    int socket;
    struct sockaddr_in local;
    struct counters counters;
};

struct connection {
    struct endpoint *endpoint;
    struct connection *next;
    struct sockaddr_in peer;
    struct quic *quic; // the library's
    struct session *session;
    struct stream *streams;
    const char *problem; // what is wrong with what has come
    uint64_t handshake_at;
    bool is_closed;
};

// The client's connection, of which nothing is sent yet.
struct connection *dial(struct endpoint *endpoint);

// A server's connection for a client's first packet; NULL where it is none.
struct connection *admit(struct endpoint *endpoint, struct sockaddr_in peer, const uint8_t *packet,
                         size_t length);

// A client asks for an object, as soon as it may.
void ask(struct connection *connection, uint64_t size_bytes);

// The deeds of a connection: take a datagram, obey its timer, send as much as it may. Each may close it.
void receive(struct connection *connection, const uint8_t *datagram, size_t length);
void expire(struct connection *connection);
void send_packets(struct connection *connection);

// When its timer wants `expire` and `send_packets`.
uint64_t expiry(const struct connection *connection);

// Tell the peer that it is over.
void close_connection(struct connection *connection);
void free_connection(struct connection *connection);

#endif
