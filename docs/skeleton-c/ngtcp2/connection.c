#include "connection.h"

#include <ngtcp2/ngtcp2.h>
#include <ngtcp2/ngtcp2_crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if NGTCP2_VERSION_NUM >= 0x010000
#error "this connection.c is for ngtcp2 0.12, that of Debian 12 and Ubuntu 24.04"
#endif

enum { PACKET_BYTES = 1252, WINDOW_BYTES = 64 << 20, CONNECTION_ID_BYTES = 16, STREAMS_AT_ONCE = 100 };

struct quic {
    ngtcp2_conn *conn;
    ngtcp2_crypto_conn_ref reference; // by which TLS finds it
    FILE *qlog;                       // NULL: none was asked for
};

// Callbacks of ngtcp2.

static ngtcp2_conn *quic_of(ngtcp2_crypto_conn_ref *reference) {
    return ((struct quic *)reference->user_data)->conn;
}

static void draw_bytes(uint8_t *bytes, size_t length, const ngtcp2_rand_ctx *context) {
    (void)context;
    fill_randomly(bytes, length);
}

static ngtcp2_cid random_id(size_t length) {
    ngtcp2_cid id = {.datalen = length};
    fill_randomly(id.data, length);
    return id;
}

static int make_id(ngtcp2_conn *quic, ngtcp2_cid *id, uint8_t *token, size_t length, void *connection) {
    (void)quic, (void)connection;
    *id = random_id(length);
    fill_randomly(token, NGTCP2_STATELESS_RESET_TOKENLEN);
    return 0;
}

static int note_handshake(ngtcp2_conn *quic, void *user) {
    (void)quic;
    struct connection *connection = user;
    connection->handshake_at = now();
    return 0;
}

// Opens the streams of what waits for one.
static int open_streams(ngtcp2_conn *quic, uint64_t streams, void *user) {
    (void)streams;
    struct connection *connection = user;
    for (struct stream *stream = connection->streams; stream != NULL; stream = stream->next)
        if (stream->id < 0 && ngtcp2_conn_open_bidi_stream(quic, &stream->id, NULL) != 0)
            break;
    return 0;
}

static int close_stream(ngtcp2_conn *quic, uint32_t flags, int64_t id, uint64_t code, void *user,
                        void *of_stream) {
    (void)flags, (void)code, (void)of_stream;
    struct connection *connection = user;
    if (!connection->endpoint->assignment->is_server)
        return 0;
    remove_stream(&connection->streams, id);
    ngtcp2_conn_extend_max_streams_bidi(quic, 1);
    return 0;
}

static int take_stream(ngtcp2_conn *quic, uint32_t flags, int64_t id, uint64_t offset, const uint8_t *data,
                       size_t length, void *user, void *of_stream) {
    (void)offset, (void)of_stream;
    struct connection *connection = user;
    struct stream *stream = find_stream(connection->streams, id);
    if (stream == NULL)
        stream = add_stream(&connection->streams, connection->endpoint->assignment, id, 0);
    ngtcp2_conn_extend_max_stream_offset(quic, id, length);
    ngtcp2_conn_extend_max_offset(quic, length);
    connection->problem = take_from_stream(stream, data, length, flags & NGTCP2_STREAM_DATA_FLAG_FIN);
    return connection->problem == NULL ? 0 : NGTCP2_ERR_CALLBACK_FAILURE;
}

static FILE *open_qlog(const struct assignment *assignment) {
    const char *path = next_qlog(assignment);
    FILE *file = path == NULL ? NULL : fopen(path, "w");
    if (path != NULL && file == NULL)
        fail(EXIT_FAILURE, "%s cannot be written", path);
    return file;
}

// ngtcp2 tells of packets in its qlog alone, an event a call: that is what is counted. A packet that is
// declared lost is counted once, and one with nothing but acknowledgements never.
static void count_event(void *user, uint32_t flags, const void *data, size_t length) {
    (void)flags;
    struct connection *connection = user;
    struct counters *counters = &connection->endpoint->counters;
    FILE *qlog = connection->quic->qlog;
    if (qlog != NULL)
        fwrite(data, 1, length, qlog);
    const struct {
        const char *name;
        uint64_t *count;
    } counted[] = {
        {"\"transport:packet_sent\"", &counters->packets_sent},
        {"\"transport:packet_received\"", &counters->packets_received},
        {"\"recovery:packet_lost\"", &counters->packets_lost},
    };
    for (size_t i = 0; i < sizeof counted / sizeof *counted; i++)
        *counted[i].count += memmem(data, length, counted[i].name, strlen(counted[i].name)) != NULL;
}

// Connections.

static ngtcp2_cc_algo controller(const char *name) {
    static const char *NAMES[] = {"reno", "cubic", "bbr", "bbr2"};
    static const ngtcp2_cc_algo CONTROLLERS[] = {NGTCP2_CC_ALGO_RENO, NGTCP2_CC_ALGO_CUBIC,
                                                 NGTCP2_CC_ALGO_BBR, NGTCP2_CC_ALGO_BBR2};
    for (int i = 0; i < 4; i++)
        if (strcmp(name, NAMES[i]) == 0)
            return CONTROLLERS[i];
    fail(EXIT_WRONG_CALL, "congestion_control = \"%s\": must be reno, cubic, bbr or bbr2", name);
}

static ngtcp2_path path_of(struct connection *connection) {
    struct endpoint *endpoint = connection->endpoint;
    return (ngtcp2_path){
        .local = {(struct sockaddr *)&endpoint->local, sizeof endpoint->local},
        .remote = {(struct sockaddr *)&connection->peer, sizeof connection->peer},
    };
}

// `first` is the client's first packet, NULL for the client itself.
static struct connection *new_connection(struct endpoint *endpoint, struct sockaddr_in peer,
                                         const ngtcp2_pkt_hd *first) {
    struct connection *connection = calloc(1, sizeof *connection);
    if (connection == NULL)
        fail(EXIT_FAILURE, "there is no memory for a connection");
    connection->endpoint = endpoint;
    connection->peer = peer;
    struct quic *quic = connection->quic = calloc(1, sizeof *quic);
    if (quic == NULL)
        fail(EXIT_FAILURE, "there is no memory for a connection");
    quic->qlog = open_qlog(endpoint->assignment);
    quic->reference = (ngtcp2_crypto_conn_ref){quic_of, quic};
    connection->session = new_session(endpoint->assignment, endpoint->credentials, &quic->reference);

    const ngtcp2_callbacks callbacks = {
        .client_initial = ngtcp2_crypto_client_initial_cb,
        .recv_client_initial = ngtcp2_crypto_recv_client_initial_cb,
        .recv_crypto_data = ngtcp2_crypto_recv_crypto_data_cb,
        .handshake_completed = note_handshake,
        .encrypt = ngtcp2_crypto_encrypt_cb,
        .decrypt = ngtcp2_crypto_decrypt_cb,
        .hp_mask = ngtcp2_crypto_hp_mask_cb,
        .recv_stream_data = take_stream,
        .recv_retry = ngtcp2_crypto_recv_retry_cb,
        .extend_max_local_streams_bidi = open_streams,
        .stream_close = close_stream,
        .rand = draw_bytes,
        .get_new_connection_id = make_id,
        .update_key = ngtcp2_crypto_update_key_cb,
        .delete_crypto_aead_ctx = ngtcp2_crypto_delete_crypto_aead_ctx_cb,
        .delete_crypto_cipher_ctx = ngtcp2_crypto_delete_crypto_cipher_ctx_cb,
        .get_path_challenge_data = ngtcp2_crypto_get_path_challenge_data_cb,
        .version_negotiation = ngtcp2_crypto_version_negotiation_cb,
    };
    ngtcp2_duration deadline = (ngtcp2_duration)(endpoint->assignment->deadline_s * SECOND);
    ngtcp2_settings settings;
    ngtcp2_settings_default(&settings);
    settings.initial_ts = now();
    settings.cc_algo = controller(endpoint->assignment->congestion_control);
    settings.max_tx_udp_payload_size = PACKET_BYTES;
    settings.no_tx_udp_payload_size_shaping = 1;
    settings.no_pmtud = 1; // the link's packets are of this size
    settings.handshake_timeout = deadline;
    settings.qlog.write = count_event;
    ngtcp2_transport_params params;
    ngtcp2_transport_params_default(&params);
    params.initial_max_streams_bidi = STREAMS_AT_ONCE;
    params.initial_max_stream_data_bidi_local = WINDOW_BYTES;
    params.initial_max_stream_data_bidi_remote = WINDOW_BYTES;
    params.initial_max_data = WINDOW_BYTES;
    params.max_idle_timeout = deadline;

    ngtcp2_path path = path_of(connection);
    ngtcp2_cid own = random_id(CONNECTION_ID_BYTES), other = random_id(CONNECTION_ID_BYTES);
    if (first != NULL)
        settings.qlog.odcid = params.original_dcid = first->dcid;
    int result = first == NULL
                     ? ngtcp2_conn_client_new(&quic->conn, &other, &own, &path, NGTCP2_PROTO_VER_V1,
                                              &callbacks, &settings, &params, NULL, connection)
                     : ngtcp2_conn_server_new(&quic->conn, &first->scid, &own, &path, first->version,
                                              &callbacks, &settings, &params, NULL, connection);
    if (result != 0)
        fail(EXIT_FAILURE, "no connection can be made: %s", ngtcp2_strerror(result));
    ngtcp2_conn_set_tls_native_handle(quic->conn, connection->session);
    return connection;
}

struct connection *dial(struct endpoint *endpoint) {
    return new_connection(endpoint, endpoint->assignment->address, NULL);
}

void ask(struct connection *connection, uint64_t size_bytes) {
    add_stream(&connection->streams, connection->endpoint->assignment, -1, size_bytes);
    if (connection->handshake_at != 0)
        open_streams(connection->quic->conn, 0, connection);
}

struct connection *admit(struct endpoint *endpoint, struct sockaddr_in peer, const uint8_t *packet,
                         size_t length) {
    ngtcp2_pkt_hd first;
    return ngtcp2_accept(&first, packet, length) == 0 ? new_connection(endpoint, peer, &first) : NULL;
}

static void transmit(struct connection *connection, const uint8_t *packet, size_t length) {
    // A packet that the kernel does not take is lost, as one that the link drops.
    sendto(connection->endpoint->socket, packet, length, 0, (struct sockaddr *)&connection->peer,
           sizeof connection->peer);
    connection->endpoint->counters.bytes_sent += length;
}

static void close_for(struct connection *connection, const ngtcp2_connection_close_error *reason) {
    uint8_t packet[PACKET_BYTES];
    ngtcp2_path_storage path;
    ngtcp2_path_storage_zero(&path);
    ngtcp2_ssize length = ngtcp2_conn_write_connection_close(connection->quic->conn, &path.path, NULL, packet,
                                                             sizeof packet, reason, now());
    if (length > 0)
        transmit(connection, packet, (size_t)length);
    connection->is_closed = true;
}

// Obeys an error of ngtcp2: a client ends, a server serves others.
static void obey(struct connection *connection, int result) {
    if (result == 0)
        return;
    if (!connection->endpoint->assignment->is_server) {
        const char *certificate = certificate_problem(connection->session);
        fail(EXIT_FAILURE, "%s",
             connection->problem ? connection->problem
             : certificate       ? certificate
                                 : ngtcp2_strerror(result));
    }
    if (connection->problem)
        fprintf(stderr, "a connection was closed: %s\n", connection->problem);
    bool is_quiet =
        result == NGTCP2_ERR_DRAINING || result == NGTCP2_ERR_DROP_CONN || result == NGTCP2_ERR_IDLE_CLOSE;
    ngtcp2_connection_close_error reason;
    ngtcp2_connection_close_error_default(&reason);
    ngtcp2_connection_close_error_set_transport_error_liberr(&reason, result, NULL, 0);
    if (is_quiet)
        connection->is_closed = true;
    else
        close_for(connection, &reason);
}

void receive(struct connection *connection, const uint8_t *datagram, size_t length) {
    ngtcp2_path path = path_of(connection);
    obey(connection, ngtcp2_conn_read_pkt(connection->quic->conn, &path, NULL, datagram, length, now()));
}

void expire(struct connection *connection) {
    obey(connection, ngtcp2_conn_handle_expiry(connection->quic->conn, now()));
}

uint64_t expiry(const struct connection *connection) {
    return ngtcp2_conn_get_expiry(connection->quic->conn);
}

void send_packets(struct connection *connection) {
    size_t quantum = ngtcp2_conn_get_send_quantum(connection->quic->conn), written = 0;
    struct stream *blocked = NULL;
    while (!connection->is_closed && written < quantum) {
        uint8_t packet[PACKET_BYTES];
        struct iovec pieces[2];
        int count = 0;
        uint32_t flags = NGTCP2_WRITE_STREAM_FLAG_NONE;
        struct stream *stream = next_sender(connection->streams, blocked);
        if (stream != NULL) {
            count = pending(&stream->transfer, pieces);
            flags = NGTCP2_WRITE_STREAM_FLAG_FIN;
        }
        ngtcp2_path_storage path;
        ngtcp2_path_storage_zero(&path);
        ngtcp2_ssize taken = -1;
        ngtcp2_ssize length = ngtcp2_conn_writev_stream(
            connection->quic->conn, &path.path, NULL, packet, sizeof packet, &taken, flags,
            stream ? stream->id : -1, (ngtcp2_vec *)pieces, (size_t)count, now());
        if (length == NGTCP2_ERR_STREAM_DATA_BLOCKED || length == NGTCP2_ERR_STREAM_SHUT_WR) {
            blocked = stream;
            continue;
        }
        if (length < 0)
            obey(connection, (int)length);
        if (taken >= 0)
            count_sent(&stream->transfer, (size_t)taken);
        if (length <= 0)
            break;
        transmit(connection, packet, (size_t)length);
        written += (size_t)length;
    }
    if (!connection->is_closed)
        ngtcp2_conn_update_pkt_tx_time(connection->quic->conn, now()); // pacing
}

void close_connection(struct connection *connection) {
    ngtcp2_connection_close_error reason;
    ngtcp2_connection_close_error_default(&reason);
    ngtcp2_connection_close_error_set_application_error(&reason, 0, NULL, 0);
    if (!connection->is_closed)
        close_for(connection, &reason);
}

void free_connection(struct connection *connection) {
    ngtcp2_conn_stat state;
    ngtcp2_conn_get_conn_stat(connection->quic->conn, &state);
    connection->endpoint->counters.smoothed_rtt_ms = (double)state.smoothed_rtt / MILLISECOND;
    ngtcp2_conn_del(connection->quic->conn);
    if (connection->quic->qlog != NULL)
        fclose(connection->quic->qlog);
    free(connection->quic);
    remove_streams(&connection->streams);
    free_session(connection->session);
    free(connection);
}
