/* The laws of fec.h, as a program in C meets them: what is encoded and erased is decoded, and nothing hostile
 * does harm. Status 0 if all hold; else a line for the first that does not. */
#include <fec.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(holds)                                                                                         \
    do {                                                                                                     \
        if (!(holds)) {                                                                                      \
            fprintf(stderr, "%s:%d: not so: %s (%s)\n", __FILE__, __LINE__, #holds, fec_error());            \
            exit(1);                                                                                         \
        }                                                                                                    \
    } while (0)

enum { SIZE = 1200, CAPACITY = SIZE + FEC_MAX_HEADER, BLOCK = 20, BLOCKS = 25, MOST_REPAIRS = 5 };

static uint32_t state = 1;

/* Marsaglia's xorshift: the same numbers in every run. */
static uint32_t number(void) {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state;
}

static void fill(uint8_t *bytes, size_t length) {
    for (size_t place = 0; place < length; place++)
        bytes[place] = (uint8_t)number();
}

static fec_context slot(uint32_t of) {
    fec_context context = {0};
    context.slot = of;
    return context;
}

/* Blocks of 20 symbols, each with `repairs` repair symbols: all `losses` source symbols that are lost are
 * recovered. */
static void decode_erase_encode_is_identity(uint32_t code, size_t repairs, size_t losses) {
    static uint8_t sent[BLOCK][SIZE], payload[MOST_REPAIRS][CAPACITY];
    const fec_context more = slot(FEC_SLOT_DATA);
    fec_encoder *encoder;
    fec_decoder *decoder;
    CHECK(fec_encoder_new_block(&encoder, code, SIZE, BLOCK + repairs, BLOCK, 1) == FEC_STATUS_OK);
    CHECK(fec_decoder_new(&decoder, code, SIZE, BLOCK, 0) == FEC_STATUS_OK);
    CHECK(fec_encoder_set_window(encoder, BLOCK) == FEC_STATUS_OK);
    for (uint64_t block = 0; block < BLOCKS; block++) {
        size_t lengths[MOST_REPAIRS], lost = 0, recovered = 0;
        int is_lost[BLOCK] = {0};
        for (size_t place = 0; place < BLOCK; place++) {
            uint64_t sid;
            fill(sent[place], SIZE);
            CHECK(fec_encoder_wants_repair(encoder, &more) == FEC_STATUS_NO);
            CHECK(fec_encoder_protects(encoder, &more) == FEC_STATUS_OK);
            CHECK(fec_encoder_protect(encoder, sent[place], SIZE, &sid) == FEC_STATUS_OK);
            CHECK(sid == block * BLOCK + place);
        }
        for (size_t made = 0; made < repairs; made++) {
            CHECK(fec_encoder_wants_repair(encoder, &more) == FEC_STATUS_OK);
            CHECK(fec_encoder_repair(encoder, &more, payload[made], CAPACITY, &lengths[made]) ==
                  FEC_STATUS_OK);
            CHECK(lengths[made] > SIZE && lengths[made] <= CAPACITY);
        }
        while (lost < losses) {
            size_t place = number() % BLOCK;
            lost += !is_lost[place];
            is_lost[place] = 1;
        }
        for (size_t place = 0; place < BLOCK; place++)
            if (!is_lost[place])
                CHECK(fec_decoder_source(decoder, block * BLOCK + place, sent[place], SIZE) == FEC_STATUS_OK);
        for (size_t made = 0; made < repairs; made++) {
            uint64_t sid;
            const uint8_t *symbol;
            size_t length;
            CHECK(fec_decoder_repair(decoder, payload[made], lengths[made]) == FEC_STATUS_OK);
            while (fec_decoder_recovered(decoder, &sid, &symbol, &length) == FEC_STATUS_OK) {
                size_t place = (size_t)(sid - block * BLOCK);
                CHECK(place < BLOCK && is_lost[place] && length == SIZE);
                CHECK(memcmp(symbol, sent[place], SIZE) == 0);
                CHECK(fec_encoder_recovered(encoder, sid) == FEC_STATUS_OK);
                is_lost[place] = 0;
                recovered++;
            }
        }
        CHECK(recovered == lost);
    }
    fec_encoder_free(encoder);
    fec_decoder_free(decoder);
}

/* At the end of data `safe` protects a message, and after a hundred packets without a loss it does not. */
static void safe_repairs_as_losses_call_for(void) {
    static uint8_t symbol[SIZE], payload[CAPACITY];
    const uint64_t ms = 1000000;
    size_t length, made = 0;
    uint64_t sid;
    fec_encoder *encoder;
    fec_context end = slot(FEC_SLOT_IDLE);
    end.smoothed_rtt_ns = end.recent_rtt_ns = end.min_rtt_ns = 20 * ms;
    end.window_bytes = 100 * SIZE;
    end.rate_bytes_per_s = 50 * end.window_bytes;
    end.packet_bytes = SIZE;
    end.is_free = 1;
    end.arrived = 80;
    end.lost = end.runs = 20;
    CHECK(fec_encoder_new_safe(&encoder, FEC_CODE_RLC, SIZE, 100) == FEC_STATUS_OK);
    CHECK(fec_encoder_set_window(encoder, 100) == FEC_STATUS_OK);
    CHECK(fec_encoder_repair(encoder, &end, payload, sizeof payload, &length) == FEC_STATUS_NO &&
          length == 0);
    for (int count = 0; count < 10; count++)
        CHECK(fec_encoder_protect(encoder, symbol, SIZE, &sid) == FEC_STATUS_OK);
    while (fec_encoder_repair(encoder, &end, payload, sizeof payload, &length) == FEC_STATUS_OK)
        made++;
    CHECK(made >= 2 && made <= 5); /* at 20 % of 10, and at most a half */
    CHECK(fec_encoder_repair_settled(encoder, 0) == FEC_STATUS_OK);
    CHECK(fec_encoder_lost(encoder, 0) == FEC_STATUS_OK && fec_encoder_acked(encoder, 1) == FEC_STATUS_OK);
    CHECK(fec_encoder_feedback(encoder, &end) == FEC_STATUS_OK);
    end.arrived = 100;
    end.lost = end.runs = 0;
    CHECK(fec_encoder_protects(encoder, &end) == FEC_STATUS_NO);
    CHECK(fec_encoder_wants_repair(encoder, &end) == FEC_STATUS_NO);
    fec_encoder_free(encoder);
}

static int error_names(const char *what) {
    return strstr(fec_error(), what) != NULL && strchr(fec_error(), '\n') == NULL;
}

#define REFUSED(call, what) CHECK((call) == FEC_STATUS_ARGUMENT && error_names(what))

static void bad_arguments_are_refused(void) {
    static uint8_t bytes[CAPACITY];
    const uint8_t *symbol;
    uint64_t sid;
    size_t length;
    fec_range ranges[1];
    fec_encoder *encoder = (fec_encoder *)bytes;
    fec_decoder *decoder = (fec_decoder *)bytes;
    fec_context context = slot(FEC_SLOT_IDLE);
    REFUSED(fec_encoder_new_safe(NULL, FEC_CODE_RLC, SIZE, 100), "encoder is null");
    REFUSED(fec_encoder_new_safe(&encoder, 0, SIZE, 100), "code = 0");
    CHECK(encoder == NULL);
    REFUSED(fec_encoder_new_safe(&encoder, 5, SIZE, 100), "code = 5");
    REFUSED(fec_encoder_new_safe(&encoder, FEC_CODE_RLC, 0, 100), "symbol_size = 0");
    REFUSED(fec_encoder_new_safe(&encoder, FEC_CODE_RLC, FEC_MAX_SYMBOL + 1, 100), "symbol_size = 65536");
    REFUSED(fec_encoder_new_safe(&encoder, FEC_CODE_RLC, SIZE_MAX, 100), "symbol_size");
    REFUSED(fec_encoder_new_safe(&encoder, FEC_CODE_RLC, SIZE, 0), "window = 0");
    REFUSED(fec_encoder_new_safe(&encoder, FEC_CODE_RLC, SIZE, 256), "window = 256");
    REFUSED(fec_encoder_new_constant(&encoder, FEC_CODE_RLC, SIZE, 2, 2, 20), "n = 2, k = 2");
    REFUSED(fec_encoder_new_constant(&encoder, FEC_CODE_RLC, SIZE, SIZE_MAX, 1, 20), "n = ");
    REFUSED(fec_encoder_new_constant(&encoder, FEC_CODE_RLC, SIZE, SIZE_MAX, SIZE_MAX - 1, 20), "k = ");
    REFUSED(fec_encoder_new_block(&encoder, FEC_CODE_XOR, SIZE, 5, 3, 1), "at most n = 4");
    REFUSED(fec_encoder_new_block(&encoder, FEC_CODE_XOR, SIZE, 4, 3, SIZE_MAX), "interleave");
    REFUSED(fec_decoder_new(NULL, FEC_CODE_RLC, SIZE, 100, 0), "decoder is null");
    REFUSED(fec_decoder_new(&decoder, 77, SIZE, 100, 0), "code = 77");
    CHECK(decoder == NULL);
    REFUSED(fec_decoder_new(&decoder, FEC_CODE_RLC, 0, 100, 0), "symbol_size = 0");
    REFUSED(fec_decoder_new(&decoder, FEC_CODE_RLC, SIZE, 0, 0), "window = 0");
    REFUSED(fec_decoder_new(&decoder, FEC_CODE_RLC, SIZE, 256, 0), "window = 256");
    REFUSED(fec_decoder_new(&decoder, FEC_CODE_RLC, SIZE, 100, 199), "look_back = 199");
    REFUSED(fec_decoder_new(&decoder, FEC_CODE_RLC, SIZE, 100, 4097), "look_back = 4097");

    CHECK(fec_encoder_new_safe(&encoder, FEC_CODE_RLC, SIZE, 100) == FEC_STATUS_OK);
    CHECK(fec_decoder_new(&decoder, FEC_CODE_RLC, SIZE, 100, 200) == FEC_STATUS_OK);
    REFUSED(fec_encoder_set_window(NULL, 1), "encoder is null");
    REFUSED(fec_encoder_protects(NULL, &context), "encoder is null");
    REFUSED(fec_encoder_protects(encoder, NULL), "context is null");
    REFUSED(fec_encoder_protect(NULL, bytes, 1, &sid), "encoder is null");
    REFUSED(fec_encoder_protect(encoder, NULL, 1, &sid), "symbol is null");
    REFUSED(fec_encoder_protect(encoder, bytes, 1, NULL), "sid is null");
    REFUSED(fec_encoder_protect(encoder, bytes, SIZE + 1, &sid), "at most 1200");
    REFUSED(fec_encoder_protect(encoder, bytes, SIZE_MAX, &sid), "at most 1200");
    REFUSED(fec_encoder_acked(NULL, 0), "encoder is null");
    REFUSED(fec_encoder_lost(NULL, 0), "encoder is null");
    REFUSED(fec_encoder_recovered(NULL, 0), "encoder is null");
    REFUSED(fec_encoder_repair_settled(NULL, 0), "encoder is null");
    REFUSED(fec_encoder_feedback(NULL, &context), "encoder is null");
    REFUSED(fec_encoder_feedback(encoder, NULL), "context is null");
    REFUSED(fec_encoder_wants_repair(encoder, NULL), "context is null");
    REFUSED(fec_encoder_repair(NULL, &context, bytes, CAPACITY, &length), "encoder is null");
    REFUSED(fec_encoder_repair(encoder, NULL, bytes, CAPACITY, &length), "context is null");
    REFUSED(fec_encoder_repair(encoder, &context, NULL, CAPACITY, &length), "payload is null");
    REFUSED(fec_encoder_repair(encoder, &context, bytes, CAPACITY, NULL), "length is null");
    REFUSED(fec_decoder_source(NULL, 0, bytes, 1), "decoder is null");
    REFUSED(fec_decoder_source(decoder, 0, NULL, 1), "symbol is null");
    REFUSED(fec_decoder_source(decoder, 0, bytes, SIZE_MAX), "symbol of");
    REFUSED(fec_decoder_repair(NULL, bytes, 1), "decoder is null");
    REFUSED(fec_decoder_repair(decoder, NULL, 1), "payload is null");
    REFUSED(fec_decoder_repair(decoder, bytes, SIZE_MAX), "payload of");
    REFUSED(fec_decoder_recovered(NULL, &sid, &symbol, &length), "decoder is null");
    REFUSED(fec_decoder_recovered(decoder, NULL, &symbol, &length), "sid is null");
    REFUSED(fec_decoder_recovered(decoder, &sid, NULL, &length), "symbol is null");
    REFUSED(fec_decoder_recovered(decoder, &sid, &symbol, NULL), "length is null");
    REFUSED(fec_decoder_acks(NULL, ranges, 1, &length), "decoder is null");
    REFUSED(fec_decoder_acks(decoder, NULL, 1, &length), "ranges is null");
    REFUSED(fec_decoder_acks(decoder, ranges, 1, NULL), "count is null");
    for (size_t capacity = 0; capacity < CAPACITY; capacity += 101)
        CHECK(fec_encoder_repair(encoder, &context, bytes, capacity, &length) == FEC_STATUS_BUFFER &&
              error_names("must be 1213 or more"));
    fec_encoder_free(encoder);
    fec_decoder_free(decoder);
    fec_encoder_free(NULL);
    fec_decoder_free(NULL);
}

/* At the bound a context is right, one beyond it is named. */
static void contexts_have_bounds(void) {
    const uint64_t limit = 1ull << 60;
    fec_context context = slot(0);
    fec_encoder *encoder;
    const struct {
        uint64_t *field, most;
        const char *name;
    } bounds[] = {
        {&context.now_ns, limit - 1, "now_ns"},
        {&context.unsent_bytes, limit - 1, "unsent_bytes"},
        {&context.window_bytes, limit - 1, "window_bytes"},
        {&context.in_flight_bytes, limit - 1, "in_flight_bytes"},
        {&context.smoothed_rtt_ns, limit - 1, "smoothed_rtt_ns"},
        {&context.recent_rtt_ns, limit - 1, "recent_rtt_ns"},
        {&context.min_rtt_ns, limit - 1, "min_rtt_ns"},
        {&context.delivers_bytes_per_s, limit - 1, "delivers_bytes_per_s"},
        {&context.rate_bytes_per_s, limit - 1, "rate_bytes_per_s"},
        {&context.packet_bytes, 131070, "packet_bytes"},
        {&context.arrived, limit - 1, "arrived"},
        {&context.lost, limit - 1, "lost"},
        {&context.runs, 0, "runs"}, /* as many as losses */
    };
    CHECK(fec_encoder_new_safe(&encoder, FEC_CODE_RLC, SIZE, 100) == FEC_STATUS_OK);
    REFUSED(fec_encoder_protects(encoder, &context), "slot = 0");
    context.slot = FEC_SLOT_PROBE + 1;
    REFUSED(fec_encoder_protects(encoder, &context), "slot = 4");
    for (size_t place = 0; place < sizeof bounds / sizeof *bounds; place++) {
        context = slot(FEC_SLOT_DATA);
        *bounds[place].field = bounds[place].most;
        CHECK(fec_encoder_feedback(encoder, &context) == FEC_STATUS_OK);
        ++*bounds[place].field;
        REFUSED(fec_encoder_feedback(encoder, &context), bounds[place].name);
    }
    fec_encoder_free(encoder);
}

/* Whatever a context says, it is refused, or gets an answer. */
static void contexts_of_any_numbers_are_answered(void) {
    static uint8_t bytes[CAPACITY];
    const uint64_t numbers[] = {0, 1, SIZE, 1000000, (1ull << 60) - 1, 1ull << 60, UINT64_MAX};
    size_t answered = 0, refused = 0;
    fec_encoder *encoder;
    CHECK(fec_encoder_new_safe(&encoder, FEC_CODE_RLC, SIZE, 255) == FEC_STATUS_OK);
    CHECK(fec_encoder_set_window(encoder, SIZE_MAX) == FEC_STATUS_OK);
    for (int round = 0; round < 40000; round++) {
        fec_context context;
        fec_status status;
        uint64_t sid;
        size_t length;
        /* A quarter of them legal as a whole, so that all that follows the checks is reached. */
        const size_t most = number() % 4 ? 5 : sizeof numbers / sizeof *numbers;
        uint64_t *fields[] = {&context.now_ns,
                              &context.unsent_bytes,
                              &context.window_bytes,
                              &context.in_flight_bytes,
                              &context.smoothed_rtt_ns,
                              &context.recent_rtt_ns,
                              &context.min_rtt_ns,
                              &context.rate_bytes_per_s,
                              &context.arrived,
                              &context.delivers_bytes_per_s,
                              &context.lost};
        fill((uint8_t *)&context, sizeof context);
        for (size_t field = 0; field < sizeof fields / sizeof *fields; field++)
            *fields[field] = numbers[number() % most];
        context.slot = number() % 8 ? FEC_SLOT_IDLE : number() % 5;
        context.packet_bytes = numbers[number() % (number() % 8 ? 3 : most)];
        context.runs = number() % 2 ? context.lost : numbers[number() % most];
        context.has_acks = number() % 2;
        CHECK(fec_encoder_protect(encoder, bytes, number() % SIZE, &sid) == FEC_STATUS_OK);
        status = fec_encoder_repair(encoder, &context, bytes, sizeof bytes, &length);
        CHECK(status == FEC_STATUS_OK || status == FEC_STATUS_NO || status == FEC_STATUS_ARGUMENT);
        CHECK(fec_encoder_wants_repair(encoder, &context) >= FEC_STATUS_ARGUMENT);
        CHECK(fec_encoder_feedback(encoder, &context) >= FEC_STATUS_ARGUMENT);
        answered += status == FEC_STATUS_OK;
        refused += status == FEC_STATUS_ARGUMENT;
    }
    CHECK(answered > 100 && refused > 100);
    fec_encoder_free(encoder);
}

/* A peer may send anything: it is accepted or refused, and symbols that were recovered before stay
 * known. */
static void hostile_peers_are_refused(void) {
    static uint8_t bytes[FEC_MAX_SYMBOL + FEC_MAX_HEADER + 1];
    size_t taken = 0, refused = 0, count;
    fec_decoder *decoder;
    fec_encoder *encoder;
    CHECK(fec_encoder_new_safe(&encoder, FEC_CODE_RLC, SIZE, 100) == FEC_STATUS_OK);
    CHECK(fec_encoder_acked(encoder, 0) == FEC_STATUS_MALFORMED && error_names("SID 0"));
    CHECK(fec_encoder_lost(encoder, UINT64_MAX) == FEC_STATUS_MALFORMED);
    CHECK(fec_encoder_recovered(encoder, 1ull << 62) == FEC_STATUS_MALFORMED);
    CHECK(fec_encoder_repair_settled(encoder, UINT64_MAX) == FEC_STATUS_OK); /* of none */
    fec_encoder_free(encoder);
    for (uint32_t code = FEC_CODE_XOR; code <= FEC_CODE_VANDERMONDE; code++) {
        CHECK(fec_decoder_new(&decoder, code, SIZE, 40, 0) == FEC_STATUS_OK);
        CHECK(fec_decoder_repair(decoder, NULL, 0) == FEC_STATUS_MALFORMED && error_names("without"));
        CHECK(fec_decoder_source(decoder, 1ull << 62, bytes, 1) == FEC_STATUS_MALFORMED &&
              error_names("SID"));
        CHECK(fec_decoder_source(decoder, 0, bytes, SIZE + 1) == FEC_STATUS_MALFORMED &&
              error_names("longer"));
        CHECK(fec_decoder_repair(decoder, bytes, FEC_MAX_SYMBOL + FEC_MAX_HEADER) == FEC_STATUS_MALFORMED);
        for (int round = 0; round < 20000; round++) {
            size_t length = number() % 64;
            uint64_t sid;
            const uint8_t *symbol;
            fec_status status;
            fill(bytes, length + 6);
            bytes[0] &=
                number() % 4 ? 0x3f : 0xff; /* mostly an SID of one byte, a few symbols, and a stride of 1 */
            bytes[1] %= number() % 4 ? 40 : 255;
            bytes[2] = number() % 4 ? 1 : bytes[2];
            bytes[3] = number() % 4 ? 0 : bytes[3];
            bytes[5] = number() % 4 ? (code == FEC_CODE_RLC ? 15 : 0) : bytes[5];
            status = number() % 4 ? fec_decoder_repair(decoder, bytes, length)
                                  : fec_decoder_source(decoder, number() % 64, bytes, length);
            CHECK(status == FEC_STATUS_OK || status == FEC_STATUS_MALFORMED);
            taken += status == FEC_STATUS_OK;
            refused += status == FEC_STATUS_MALFORMED;
            while (fec_decoder_recovered(decoder, &sid, &symbol, &length) == FEC_STATUS_OK)
                CHECK(sid < 1ull << 62 && symbol != NULL && length <= SIZE);
        }
        CHECK(fec_decoder_acks(decoder, NULL, 0, &count) == FEC_STATUS_OK && count <= 80);
        fec_decoder_free(decoder);
    }
    CHECK(taken > 1000 && refused > 1000);
}

static void what_was_recovered_is_told_in_ranges(void) {
    static uint8_t symbol[SIZE], payload[CAPACITY];
    const fec_context more = slot(FEC_SLOT_DATA);
    fec_range ranges[2];
    size_t length, count;
    uint64_t sid;
    fec_encoder *encoder;
    fec_decoder *decoder;
    CHECK(fec_encoder_new_block(&encoder, FEC_CODE_XOR, SIZE, 3, 2, 1) == FEC_STATUS_OK);
    CHECK(fec_encoder_set_window(encoder, 2) == FEC_STATUS_OK);
    CHECK(fec_decoder_new(&decoder, FEC_CODE_XOR, SIZE, 2, 8) == FEC_STATUS_OK);
    for (int block = 0; block < 3; block++) { /* of each, the first arrives, but of the first none */
        CHECK(fec_encoder_protect(encoder, symbol, SIZE, &sid) == FEC_STATUS_OK);
        CHECK(block == 0 || fec_decoder_source(decoder, sid, symbol, SIZE) == FEC_STATUS_OK);
        CHECK(fec_encoder_protect(encoder, symbol, SIZE, &sid) == FEC_STATUS_OK);
        CHECK(fec_encoder_repair(encoder, &more, payload, CAPACITY, &length) == FEC_STATUS_OK);
        CHECK(fec_decoder_repair(decoder, payload, length) == FEC_STATUS_OK);
    }
    CHECK(fec_decoder_acks(decoder, ranges, 1, &count) == FEC_STATUS_OK);
    CHECK(count == 2 && ranges[0].first == 5 && ranges[0].last == 5);
    CHECK(fec_decoder_acks(decoder, ranges, 2, &count) == FEC_STATUS_OK);
    CHECK(count == 2 && ranges[1].first == 3 && ranges[1].last == 3);
    fec_encoder_free(encoder);
    fec_decoder_free(decoder);
}

int main(void) {
    CHECK(fec_error()[0] == '\0');
    decode_erase_encode_is_identity(FEC_CODE_XOR, 1, 1);
    decode_erase_encode_is_identity(FEC_CODE_REED_SOLOMON, MOST_REPAIRS, MOST_REPAIRS);
    decode_erase_encode_is_identity(FEC_CODE_VANDERMONDE, MOST_REPAIRS, MOST_REPAIRS);
    /* Random coefficients: one repair symbol more than losses fails once in 65,000 times. */
    decode_erase_encode_is_identity(FEC_CODE_RLC, MOST_REPAIRS, MOST_REPAIRS - 1);
    safe_repairs_as_losses_call_for();
    bad_arguments_are_refused();
    contexts_have_bounds();
    contexts_of_any_numbers_are_answered();
    hostile_peers_are_refused();
    what_was_recovered_is_told_in_ranges();
    return 0;
}
