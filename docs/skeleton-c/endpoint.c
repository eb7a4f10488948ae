// One end of a transfer over QUIC, as quic-impls/README.md asks for it: the server serves until a
// signal, the client ends when it has all.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "connection.h"

enum { RECEIVE_BUFFER_BYTES = 7 << 20, DATAGRAMS_AT_ONCE = 64 };

static volatile sig_atomic_t is_asked_to_end;

static void note_signal(int number) {
    (void)number;
    is_asked_to_end = 1;
}

// Signals come while the endpoint waits, and at no other time.
static sigset_t obey_signals(void) {
    struct sigaction action = {.sa_handler = note_signal};
    sigset_t signals, before;
    sigemptyset(&signals);
    for (int i = 0; i < 2; i++) {
        int number = (int[]){SIGINT, SIGTERM}[i];
        sigaction(number, &action, NULL);
        sigaddset(&signals, number);
    }
    sigprocmask(SIG_BLOCK, &signals, &before);
    return before;
}

static void open_socket(struct endpoint *endpoint) {
    const struct assignment *assignment = endpoint->assignment;
    const struct sockaddr *address = (const struct sockaddr *)&assignment->address;
    int size = RECEIVE_BUFFER_BYTES;
    endpoint->socket = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    setsockopt(endpoint->socket, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    socklen_t length = sizeof assignment->address;
    int result = assignment->is_server ? bind(endpoint->socket, address, length)
                                       : connect(endpoint->socket, address, length);
    if (result != 0 || getsockname(endpoint->socket, (struct sockaddr *)&endpoint->local, &length) != 0)
        fail(EXIT_FAILURE, "the socket: %s", strerror(errno));
}

// A peer keeps its address here, so that it tells the connection.
static struct connection *connection_of(struct connection *first, const struct sockaddr_in *peer) {
    for (; first != NULL; first = first->next)
        if (first->peer.sin_port == peer->sin_port && first->peer.sin_addr.s_addr == peer->sin_addr.s_addr)
            return first;
    return NULL;
}

static void take_datagrams(struct endpoint *endpoint, struct connection **first) {
    for (int i = 0; i < DATAGRAMS_AT_ONCE; i++) {
        static uint8_t datagram[65536];
        struct sockaddr_in peer;
        socklen_t peer_length = sizeof peer;
        ssize_t length = recvfrom(endpoint->socket, datagram, sizeof datagram, MSG_DONTWAIT,
                                  (struct sockaddr *)&peer, &peer_length);
        if (length < 0)
            return;
        endpoint->counters.bytes_received += (uint64_t)length;
        struct connection *connection = connection_of(*first, &peer);
        if (connection == NULL && endpoint->assignment->is_server) {
            connection = admit(endpoint, peer, datagram, (size_t)length);
            if (connection == NULL)
                continue;
            connection->next = *first;
            *first = connection;
        }
        if (connection != NULL && !connection->is_closed)
            receive(connection, datagram, (size_t)length);
    }
}

static void drop_closed(struct connection **first) {
    while (*first != NULL) {
        struct connection *connection = *first;
        if (!connection->is_closed) {
            first = &connection->next;
            continue;
        }
        *first = connection->next;
        free_connection(connection);
    }
}

// Waits for a datagram, something to read of `input` (-1: nothing is), the next timer or a signal.
static void wait_for_work(const struct endpoint *endpoint, const struct connection *first, int input,
                          uint64_t latest, const sigset_t *signals) {
    for (; first != NULL; first = first->next)
        if (expiry(first) < latest)
            latest = expiry(first);
    uint64_t time = now(), rest = latest > time ? latest - time : 0;
    struct timespec limit = {(time_t)(rest / SECOND), (long)(rest % SECOND)};
    struct pollfd read[] = {{.fd = endpoint->socket, .events = POLLIN}, {.fd = input, .events = POLLIN}};
    ppoll(read, 2, &limit, signals);
}

static void work(struct endpoint *endpoint, struct connection **first) {
    take_datagrams(endpoint, first);
    for (struct connection *connection = *first; connection != NULL; connection = connection->next) {
        if (!connection->is_closed && expiry(connection) <= now())
            expire(connection);
        if (!connection->is_closed)
            send_packets(connection);
    }
}

static void report(const struct counters *counters, double dct_s, double handshake_s) {
    const struct metric metrics[] = {
        {"dct_s", dct_s},
        {"handshake_s", handshake_s},
        {"packets_sent", (double)counters->packets_sent},
        {"packets_received", (double)counters->packets_received},
        {"bytes_sent", (double)counters->bytes_sent},
        {"bytes_received", (double)counters->bytes_received},
        {"smoothed_rtt_ms", counters->smoothed_rtt_ms},
        {"packets_lost", (double)counters->packets_lost},
    };
    int of_client = dct_s > 0 ? 0 : 2;
    int count = (int)(sizeof metrics / sizeof *metrics) - counters->counts_lost_acks;
    say_done(metrics + of_client, count - of_client);
}

static void serve(struct endpoint *endpoint, const sigset_t *signals) {
    struct connection *first = NULL;
    say_ready();
    while (!is_asked_to_end) {
        wait_for_work(endpoint, first, -1, now() + (uint64_t)60 * SECOND, signals);
        work(endpoint, &first);
        drop_closed(&first);
    }
    for (struct connection *connection = first; connection != NULL; connection = connection->next)
        close_connection(connection);
    drop_closed(&first);
    report(&endpoint->counters, 0, 0);
}

// Asks for what the input says; false at its end. It never waits for the rest of a line.
static bool read_requests(struct connection *connection) {
    static char line[1024];
    static size_t length;
    ssize_t count = read(STDIN_FILENO, line + length, sizeof line - 1 - length);
    if (count <= 0)
        return count < 0 && errno == EAGAIN;
    length += (size_t)count;
    line[length] = '\0';
    for (char *end; (end = strchr(line, '\n')) != NULL; memmove(line, end + 1, length + 1)) {
        *end = '\0';
        length -= (size_t)(end + 1 - line);
        ask(connection, read_request(line));
    }
    if (length == sizeof line - 1)
        fail(EXIT_FAILURE, "standard input: a line has more than %zu bytes", length);
    return true;
}

static void say_objects(struct connection *connection) {
    for (struct stream *stream = connection->streams; stream != NULL; stream = stream->next)
        if (stream->transfer.is_over && !stream->is_said) {
            say_object(stream->transfer.size_bytes, stream->times);
            stream->is_said = true;
        }
}

static void transfer_as_client(struct endpoint *endpoint, const sigset_t *signals) {
    const struct assignment *assignment = endpoint->assignment;
    uint64_t begun = now(), over = 0;
    uint64_t deadline = begun + (uint64_t)(assignment->deadline_s * SECOND);
    struct connection *connection = dial(endpoint);
    int input = assignment->is_asked_later ? STDIN_FILENO : -1;
    if (assignment->is_asked_later)
        fcntl(STDIN_FILENO, F_SETFL, fcntl(STDIN_FILENO, F_GETFL) | O_NONBLOCK);
    else
        ask(connection, assignment->size_bytes);
    while (input < 0 || read_requests(connection)) {
        work(endpoint, &connection);
        if (input >= 0)
            say_objects(connection);
        else if (connection->streams->transfer.is_over)
            break;
        if (now() >= deadline)
            fail(EXIT_FAILURE, "not done within the deadline of %g s", assignment->deadline_s);
        if (is_asked_to_end)
            fail(EXIT_FAILURE, "ended by a signal");
        wait_for_work(endpoint, connection, input, deadline, signals);
    }
    if (connection->handshake_at == 0)
        fail(EXIT_FAILURE, "the input ended before the handshake");
    over = now();
    double handshake_s = (double)(connection->handshake_at - begun) / SECOND;
    close_connection(connection);
    free_connection(connection);
    report(&endpoint->counters, (double)(over - begun) / SECOND, handshake_s);
}

int main(int count, char **arguments) {
    if (count != 2)
        fail(EXIT_WRONG_CALL, "usage: %s ASSIGNMENT", arguments[0]);
    const struct assignment assignment = read_assignment(arguments[1]);
    struct endpoint endpoint = {
        .assignment = &assignment,
        .credentials = read_credentials(&assignment),
    };
    sigset_t signals = obey_signals();
    open_socket(&endpoint);
    if (assignment.is_server)
        serve(&endpoint, &signals);
    else
        transfer_as_client(&endpoint, &signals);
    return EXIT_SUCCESS;
}
