/* UDP datagrams that FEC protects: messages of ten datagrams go over loopback, where some get lost.
 *
 *     datagrams [LOSS [SEED]]      a share of datagrams (0.05), and a number that decides which ones (1)
 *
 * Both ends are one program here. The sender has the policy `safe`, which adds repair symbols at the end of
 * each message, as many as the losses so far call for. A datagram is one byte, which says what it is, 8 bytes
 * of SID if it is a source symbol, and the symbol or the repair payload. Nothing is sent again: a message is
 * complete, or it isn't. */
#include <arpa/inet.h>
#include <fec.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SIZE = 1200, MESSAGES = 500, PARTS = 10, WINDOW = 100, SOURCE = 0, REPAIR = 1, HEADER = 9 };

/* The path as a transport would have measured it: 10 Mbit/s, and 20 ms there and back. */
static const uint64_t RTT_NS = 20000000, RATE_BYTES_PER_S = 1250000;

static double loss = 0.05;
static uint64_t state;
static uint64_t sent_sources, sent_repairs, lost_datagrams;
/* Parts of each message that the receiver has, and how many of them came in a source symbol of
 * their own. */
static bool has[MESSAGES * PARTS];
static int arrived_of[MESSAGES];

static void fail(const char *what) {
    fprintf(stderr, "datagrams: %s: %s\n", what, fec_error());
    exit(1);
}

/* End the program unless a call succeeds. Only a peer's bytes may fail: see receive(). */
static void must(fec_status status, const char *what) {
    if (status != FEC_STATUS_OK)
        fail(what);
}

/* SplitMix64. */
static bool is_lost(void) {
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return (double)((z ^ (z >> 31)) >> 11) < loss * 9007199254740992.0;
}

/* Write part `sid` of the application's data. */
static void write_part(uint64_t sid, uint8_t *part) {
    for (size_t place = 0; place < SIZE; place++)
        part[place] = (uint8_t)(sid * 31 + place * (sid + 7));
}

static void deliver(uint64_t sid, const uint8_t *part, size_t length) {
    uint8_t right[SIZE];
    if (sid >= MESSAGES * PARTS || length != SIZE)
        fail("a part that nobody sent");
    write_part(sid, right);
    if (memcmp(part, right, SIZE) != 0)
        fail("a part that is not what was sent");
    has[sid] = true;
}

/* The receiver takes one datagram. A malformed one is dropped: the decoder is as before. */
static void receive(int socket, fec_decoder *decoder) {
    uint8_t datagram[HEADER + SIZE + FEC_MAX_HEADER];
    ssize_t length = recv(socket, datagram, sizeof datagram, 0);
    uint64_t sid = 0;
    const uint8_t *symbol;
    size_t size;
    fec_status status = FEC_STATUS_MALFORMED;
    if (length < 1)
        return;
    if (datagram[0] == SOURCE && length >= HEADER) {
        memcpy(&sid, datagram + 1, sizeof sid);
        status = fec_decoder_source(decoder, sid, datagram + HEADER, (size_t)length - HEADER);
        if (status == FEC_STATUS_OK) {
            deliver(sid, datagram + HEADER, (size_t)length - HEADER);
            arrived_of[sid / PARTS]++;
        }
    } else if (datagram[0] == REPAIR) {
        status = fec_decoder_repair(decoder, datagram + 1, (size_t)length - 1);
    }
    if (status == FEC_STATUS_OK)
        while (fec_decoder_recovered(decoder, &sid, &symbol, &size) == FEC_STATUS_OK)
            deliver(sid, symbol, size);
}

/* Return the sender's state when it asks for repair symbols. */
static fec_context what_is_known(uint32_t slot, uint64_t in_flight) {
    fec_context context = {0};
    context.slot = slot;
    context.packet_bytes = HEADER + SIZE + FEC_MAX_HEADER;
    context.in_flight_bytes = in_flight * context.packet_bytes;
    context.smoothed_rtt_ns = context.recent_rtt_ns = context.min_rtt_ns = RTT_NS;
    context.rate_bytes_per_s = RATE_BYTES_PER_S;
    context.window_bytes = RATE_BYTES_PER_S / 1000 * (RTT_NS / 1000000);
    context.is_free = 1;
    context.lost = context.runs = lost_datagrams;
    context.arrived = sent_sources + sent_repairs - lost_datagrams;
    return context;
}

/* Send a datagram; return whether it arrived. */
static bool send_datagram(int from, int to, const uint8_t *datagram, size_t length, fec_decoder *decoder) {
    if (is_lost())
        return false;
    if (send(from, datagram, length, 0) != (ssize_t)length)
        fail("send");
    receive(to, decoder);
    return true;
}

static void send_message(int from, int to, fec_encoder *encoder, fec_decoder *decoder) {
    uint8_t datagram[HEADER + SIZE + FEC_MAX_HEADER];
    uint64_t first = sent_sources, first_repair = sent_repairs, lost = 0;
    bool arrived[PARTS];
    size_t length;
    fec_context end;
    for (int part = 0; part < PARTS; part++) {
        uint64_t sid;
        datagram[0] = SOURCE;
        write_part(first + part, datagram + HEADER);
        must(fec_encoder_protect(encoder, datagram + HEADER, SIZE, &sid), "protect");
        memcpy(datagram + 1, &sid, sizeof sid);
        arrived[part] = send_datagram(from, to, datagram, HEADER + SIZE, decoder);
        lost += !arrived[part];
    }
    end = what_is_known(FEC_SLOT_IDLE, PARTS);
    sent_sources += PARTS;
    datagram[0] = REPAIR;
    while (fec_encoder_repair(encoder, &end, datagram + 1, sizeof datagram - 1, &length) == FEC_STATUS_OK) {
        lost += !send_datagram(from, to, datagram, 1 + length, decoder);
        sent_repairs++;
    }
    /* A round-trip time later, acknowledgements have come. */
    lost_datagrams += lost;
    for (int part = 0; part < PARTS; part++)
        if (arrived[part])
            must(fec_encoder_acked(encoder, first + part), "acked");
        else if (has[first + part])
            must(fec_encoder_recovered(encoder, first + part), "recovered");
        else
            must(fec_encoder_lost(encoder, first + part), "lost");
    for (uint64_t number = first_repair; number < sent_repairs; number++)
        must(fec_encoder_repair_settled(encoder, number), "repair_settled");
    end = what_is_known(FEC_SLOT_IDLE, 0);
    must(fec_encoder_feedback(encoder, &end), "feedback");
}

/* Two sockets on loopback, the first connected to the second. */
static void open_sockets(int sockets[2]) {
    struct sockaddr_in address = {0};
    socklen_t length = sizeof address;
    struct timeval second = {.tv_sec = 1};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int end = 0; end < 2; end++)
        if ((sockets[end] = socket(AF_INET, SOCK_DGRAM, 0)) < 0)
            fail("socket");
    if (bind(sockets[1], (struct sockaddr *)&address, length) != 0 ||
        getsockname(sockets[1], (struct sockaddr *)&address, &length) != 0 ||
        connect(sockets[0], (struct sockaddr *)&address, length) != 0 ||
        setsockopt(sockets[1], SOL_SOCKET, SO_RCVTIMEO, &second, sizeof second) != 0)
        fail("loopback");
}

int main(int argc, char **argv) {
    int sockets[2], without = 0, with = 0;
    fec_encoder *encoder;
    fec_decoder *decoder;
    char *end = "";
    if (argc > 1)
        loss = strtod(argv[1], &end);
    if (*end == '\0' && argc > 2)
        state = strtoull(argv[2], &end, 10);
    else
        state = 1;
    if (argc > 3 || *end != '\0' || !(loss >= 0 && loss < 1)) {
        fprintf(stderr, "usage: datagrams [LOSS [SEED]], with LOSS from 0 to below 1\n");
        return 2;
    }
    open_sockets(sockets);
    must(fec_encoder_new_safe(&encoder, FEC_CODE_RLC, SIZE, WINDOW), "encoder");
    must(fec_decoder_new(&decoder, FEC_CODE_RLC, SIZE, WINDOW, 0), "decoder");
    must(fec_encoder_set_window(encoder, WINDOW), "window"); /* what the receiver announces */
    for (int message = 0; message < MESSAGES; message++)
        send_message(sockets[0], sockets[1], encoder, decoder);
    for (int message = 0; message < MESSAGES; message++) {
        int parts = 0;
        for (int part = 0; part < PARTS; part++)
            parts += has[message * PARTS + part];
        without += arrived_of[message] == PARTS;
        with += parts == PARTS;
    }
    printf("datagrams     %5d, and %d with a repair symbol; %d lost\n", (int)sent_sources, (int)sent_repairs,
           (int)lost_datagrams);
    printf("messages      %5d\n", MESSAGES);
    printf("complete      %5d without what was recovered\n", without);
    printf("complete      %5d with it\n", with);
    fec_encoder_free(encoder);
    fec_decoder_free(decoder);
    close(sockets[0]);
    close(sockets[1]);
    return 0;
}
