// A QUIC connection of ngtcp2 with its one stream, and what is counted of all connections.
#ifndef CONNECTION_H
#define CONNECTION_H

#include <ngtcp2/ngtcp2.h>
#include <ngtcp2/ngtcp2_crypto.h>

#include <stdio.h>

#include "tls.h"
#include "transfer.h"

struct counters {
    uint64_t packets_sent, packets_received, packets_lost, bytes_sent, bytes_received;
    double smoothed_rtt_ms;
};

struct endpoint {
    const struct assignment *assignment;
    const uint8_t *content;
    gnutls_certificate_credentials_t credentials;
    int socket;
    struct sockaddr_in local;
    struct counters counters;
};

struct connection {
    struct endpoint *endpoint;
    struct connection *next;
    struct sockaddr_in peer;
    ngtcp2_conn *quic;
    ngtcp2_crypto_conn_ref reference; // by which TLS finds `quic`
    gnutls_session_t session;
    int64_t stream; // -1: none yet
    struct transfer transfer;
    const char *problem; // what is wrong with what has come
    uint64_t handshake_at;
    FILE *qlog; // NULL: none was asked for
    bool is_closed;
};

// Nanoseconds of CLOCK_MONOTONIC.
uint64_t now(void);

// The client's connection, of which nothing is sent yet.
struct connection *dial(struct endpoint *endpoint);

// A server's connection for a client's first packet; NULL where it is none.
struct connection *admit(struct endpoint *endpoint, struct sockaddr_in peer, const uint8_t *packet,
                         size_t length);

// What one has to do next: take a datagram, obey its timer, send what it may. Each may close it.
void receive(struct connection *connection, const uint8_t *datagram, size_t length);
void expire(struct connection *connection);
void send_packets(struct connection *connection);

// When its timer wants `expire` and `send_packets`.
uint64_t expiry(const struct connection *connection);

// Tell the peer that it is over.
void close_connection(struct connection *connection);
void free_connection(struct connection *connection);

#endif
