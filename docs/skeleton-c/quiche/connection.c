#include "connection.h"

#include <quiche.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PACKET_BYTES = 1252, WINDOW_BYTES = 64 << 20, CONNECTION_ID_BYTES = 16, STREAMS_AT_ONCE = 100 };
enum { INITIAL = 1 }; // what quiche_header_info calls it

struct quic {
    quiche_conn *conn;
    int64_t next_id; // of a client's streams
    // A packet that quiche has made, of so many bytes, and when pacing lets it go.
    uint8_t packet[PACKET_BYTES];
    size_t held;
    uint64_t at;
};

static quiche_config *new_config(const struct assignment *assignment) {
    quiche_config *config = quiche_config_new(QUICHE_PROTOCOL_VERSION);
    if (config == NULL)
        fail(EXIT_FAILURE, "there is no memory for a connection");
    if (quiche_config_set_cc_algorithm_name(config, assignment->congestion_control) != 0)
        fail(EXIT_WRONG_CALL, "congestion_control = \"%s\": must be reno, cubic, bbr or bbr2",
             assignment->congestion_control);
    quiche_config_set_max_send_udp_payload_size(config, PACKET_BYTES);
    quiche_config_set_max_recv_udp_payload_size(config, PACKET_BYTES);
    quiche_config_discover_pmtu(config, false); // the link's packets are of this size
    quiche_config_set_initial_max_streams_bidi(config, STREAMS_AT_ONCE);
    quiche_config_set_initial_max_stream_data_bidi_local(config, WINDOW_BYTES);
    quiche_config_set_initial_max_stream_data_bidi_remote(config, WINDOW_BYTES);
    quiche_config_set_initial_max_data(config, WINDOW_BYTES);
    quiche_config_set_max_idle_timeout(config, (uint64_t)(assignment->deadline_s * 1000));
    return config;
}

static struct connection *new_connection(struct endpoint *endpoint, struct sockaddr_in peer) {
    const struct assignment *assignment = endpoint->assignment;
    struct connection *connection = calloc(1, sizeof *connection);
    struct quic *quic = calloc(1, sizeof *quic);
    if (connection == NULL || quic == NULL)
        fail(EXIT_FAILURE, "there is no memory for a connection");
    connection->endpoint = endpoint;
    connection->peer = peer;
    connection->quic = quic;
    connection->session = new_session(assignment, endpoint->credentials, NULL);

    uint8_t id[CONNECTION_ID_BYTES];
    fill_randomly(id, sizeof id);
    quiche_config *config = new_config(assignment);
    quic->conn =
        quiche_conn_new_with_tls(id, sizeof id, NULL, 0, (struct sockaddr *)&endpoint->local,
                                 sizeof endpoint->local, (struct sockaddr *)&connection->peer,
                                 sizeof connection->peer, config, connection->session, assignment->is_server);
    quiche_config_free(config);
    if (quic->conn == NULL)
        fail(EXIT_FAILURE, "no connection can be made");
    const char *qlog = next_qlog(assignment);
    if (qlog != NULL && !quiche_conn_set_qlog_path(quic->conn, qlog, "skeleton-c", ""))
        fail(EXIT_FAILURE, "%s cannot be written", qlog);
    return connection;
}

struct connection *dial(struct endpoint *endpoint) {
    return new_connection(endpoint, endpoint->assignment->address);
}

void ask(struct connection *connection, uint64_t size_bytes) {
    add_stream(&connection->streams, connection->endpoint->assignment, -1, size_bytes);
}

struct connection *admit(struct endpoint *endpoint, struct sockaddr_in peer, const uint8_t *packet,
                         size_t length) {
    uint32_t version;
    uint8_t type, own[QUICHE_MAX_CONN_ID_LEN], other[QUICHE_MAX_CONN_ID_LEN], token[1024];
    size_t own_length = sizeof own, other_length = sizeof other, token_length = sizeof token;
    if (quiche_header_info(packet, length, CONNECTION_ID_BYTES, &version, &type, other, &other_length, own,
                           &own_length, token, &token_length) != 0 ||
        type != INITIAL || !quiche_version_is_supported(version))
        return NULL;
    return new_connection(endpoint, peer);
}

// The error, other than a problem of the content or a certificate.
static const char *told(const quiche_conn *conn, int result) {
    static char line[256];
    bool is_application;
    uint64_t code;
    const uint8_t *reason;
    size_t length;
    if (quiche_conn_peer_error(conn, &is_application, &code, &reason, &length))
        snprintf(line, sizeof line, "the peer closed the connection: %#llx %.*s", (unsigned long long)code,
                 (int)length, (const char *)reason);
    else if (quiche_conn_is_timed_out(conn))
        snprintf(line, sizeof line, "the peer is silent");
    else
        snprintf(line, sizeof line, "error %d of quiche", result);
    return line;
}

// Obeys an error of quiche, 0 for none: a client ends, a server serves others.
static void obey(struct connection *connection, int result) {
    quiche_conn *conn = connection->quic->conn;
    bool is_over = quiche_conn_is_closed(conn) || quiche_conn_is_draining(conn);
    if (result == 0 && connection->problem == NULL && !is_over)
        return;
    if (!connection->endpoint->assignment->is_server) {
        const char *certificate = certificate_problem(connection->session);
        fail(EXIT_FAILURE, "%s",
             connection->problem ? connection->problem
             : certificate       ? certificate
                                 : told(conn, result));
    }
    if (connection->problem)
        fprintf(stderr, "a connection was closed: %s\n", connection->problem);
    close_connection(connection);
}

static void read_stream(struct connection *connection, int64_t id) {
    uint8_t data[65536];
    bool is_end = false;
    uint64_t code;
    ssize_t length;
    struct stream *stream = find_stream(connection->streams, id);
    if (stream == NULL)
        stream = add_stream(&connection->streams, connection->endpoint->assignment, id, 0);
    while (!is_end && connection->problem == NULL &&
           (length = quiche_conn_stream_recv(connection->quic->conn, (uint64_t)id, data, sizeof data, &is_end,
                                             &code)) >= 0)
        connection->problem = take_from_stream(stream, data, (size_t)length, is_end);
}

void receive(struct connection *connection, const uint8_t *datagram, size_t length) {
    quiche_conn *conn = connection->quic->conn;
    struct endpoint *endpoint = connection->endpoint;
    const quiche_recv_info info = {
        .from = (struct sockaddr *)&connection->peer,
        .from_len = sizeof connection->peer,
        .to = (struct sockaddr *)&endpoint->local,
        .to_len = sizeof endpoint->local,
    };
    ssize_t result = quiche_conn_recv(conn, (uint8_t *)datagram, length, &info); // decrypted in place
    if (connection->handshake_at == 0 && quiche_conn_is_established(conn))
        connection->handshake_at = now();
    for (int64_t id; connection->problem == NULL && (id = quiche_conn_stream_readable_next(conn)) >= 0;)
        read_stream(connection, id);
    obey(connection, result < 0 && result != QUICHE_ERR_DONE ? (int)result : 0);
}

void expire(struct connection *connection) {
    quiche_conn_on_timeout(connection->quic->conn);
    obey(connection, 0);
}

uint64_t expiry(const struct connection *connection) {
    const struct quic *quic = connection->quic;
    uint64_t rest = quiche_conn_timeout_as_nanos(quic->conn), time = now();
    uint64_t timer = rest > UINT64_MAX - time ? UINT64_MAX : time + rest;
    return quic->held != 0 && quic->at < timer ? quic->at : timer;
}

// Opens the streams of what waits for one. Each is the peer's to count as soon as something is written to it.
static void open_streams(struct connection *connection) {
    uint64_t left = quiche_conn_peer_streams_left_bidi(connection->quic->conn);
    for (struct stream *stream = connection->streams; stream != NULL; stream = stream->next)
        if (stream->id < 0 && left > 0) {
            stream->id = connection->quic->next_id;
            connection->quic->next_id += 4;
            left--;
        }
}

// Writes what quiche takes of what the stream has to send; an error of quiche, or 0.
static int write_stream(quiche_conn *conn, struct stream *stream) {
    while (has_pending(&stream->transfer)) {
        struct iovec pieces[2] = {{"", 0}};
        uint64_t code;
        int count = pending(&stream->transfer, pieces);
        ssize_t taken = quiche_conn_stream_send(conn, (uint64_t)stream->id, pieces[0].iov_base,
                                                pieces[0].iov_len, count < 2, &code);
        if (taken < 0)
            return taken == QUICHE_ERR_DONE ? 0 : (int)taken;
        count_sent(&stream->transfer, (size_t)taken);
        if ((size_t)taken < pieces[0].iov_len)
            break;
    }
    return 0;
}

static void write_streams(struct connection *connection) {
    bool is_server = connection->endpoint->assignment->is_server;
    if (!is_server && connection->handshake_at != 0)
        open_streams(connection);
    struct stream *next, *stream = next_sender(connection->streams, NULL);
    for (; stream != NULL && !connection->is_closed; stream = next) {
        obey(connection, write_stream(connection->quic->conn, stream));
        next = next_sender(connection->streams, stream);
        if (is_server && !has_pending(&stream->transfer))
            remove_stream(&connection->streams, stream->id); // quiche has a copy
    }
}

static void transmit(struct connection *connection) {
    struct quic *quic = connection->quic;
    // A packet that the kernel does not take is lost, as one that the link drops.
    sendto(connection->endpoint->socket, quic->packet, quic->held, 0, (struct sockaddr *)&connection->peer,
           sizeof connection->peer);
    connection->endpoint->counters.bytes_sent += quic->held;
    quic->held = 0;
}

// Whether there is a packet to send, now or later.
static bool make_packet(struct quic *quic) {
    quiche_send_info info;
    if (quic->held != 0)
        return true;
    ssize_t length = quiche_conn_send(quic->conn, quic->packet, sizeof quic->packet, &info);
    if (length <= 0)
        return false;
    quic->held = (size_t)length;
    quic->at = (uint64_t)info.at.tv_sec * SECOND + (uint64_t)info.at.tv_nsec;
    return true;
}

void send_packets(struct connection *connection) {
    struct quic *quic = connection->quic;
    size_t quantum = quiche_conn_send_quantum(quic->conn), written = 0;
    write_streams(connection);
    while (!connection->is_closed && written < quantum && make_packet(quic) && quic->at <= now()) {
        written += quic->held;
        transmit(connection);
    }
    if (!connection->is_closed)
        obey(connection, 0);
}

void close_connection(struct connection *connection) {
    struct quic *quic = connection->quic;
    if (connection->is_closed)
        return;
    connection->is_closed = true;
    quiche_conn_close(quic->conn, true, 0, (const uint8_t *)"", 0);
    while (make_packet(quic))
        transmit(connection);
}

void free_connection(struct connection *connection) {
    struct counters *counters = &connection->endpoint->counters;
    quiche_stats stats;
    quiche_path_stats path;
    quiche_conn_stats(connection->quic->conn, &stats);
    counters->packets_sent += stats.sent;
    counters->packets_received += stats.recv;
    counters->counts_lost_acks = true;
    if (quiche_conn_path_stats(connection->quic->conn, 0, &path) == 0)
        counters->smoothed_rtt_ms = (double)path.rtt / MILLISECOND;
    quiche_conn_free(connection->quic->conn); // and the session
    free(connection->quic);
    remove_streams(&connection->streams);
    free(connection);
}
