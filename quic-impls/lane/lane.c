#include "lane.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../dropper/written_losses.h"
#include "../../topologies/wire/written.h"

// The contents of a frame here: the tag, then the payload.
enum { TAG_SIZE = sizeof(uint64_t), ETHERNET_HEADER = 14, ETHERNET_MTU_FRAME = 1514 };

_Static_assert(LANE_PAYLOAD_MAX + LANE_OVERHEAD == ETHERNET_MTU_FRAME, "a full datagram is a full frame");

// Readings of the bytes that had left the link. A window begins with the oldest.
struct filling {
    double full_share;
    uint64_t window_ns;
    struct reading {
        uint64_t at_ns, carried_bytes;
    } * readings;
    size_t first, count, room;
};

struct lane {
    struct direction direction;
    struct frame_pool pool;
    struct schedule_step *steps; // of the direction
    struct written_losses losses;
    uint32_t overhead; // of each datagram
    bool bad;
    losses_u64 burst; // packets lost in a row
    losses_u64 stays, drawn, stay_ends_us;
    uint64_t first_at_ns;
    uint64_t *arrivals; // NULL until the first trial whose losses are clocked by time
    struct filling filling;
    uint64_t judged, dropped;
    uint64_t shorter;        // than what is judged
    uint64_t entries, exits; // hashes of their times and lengths
    uint8_t verdicts[LANE_RECORDED / 8];
    char refusal[600];
};

// The hash of all that came before, with one more word: SplitMix64's output function.
static uint64_t with(uint64_t hash, uint64_t word) {
    uint64_t z = hash + 0x9E3779B97F4A7C15 + word;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
}

struct lane *lane_new(void) {
    struct lane *lane = calloc(1, sizeof *lane);
    if (lane)
        frame_pool_init(&lane->pool, TAG_SIZE + LANE_PAYLOAD_MAX);
    return lane;
}

void lane_free(struct lane *lane) {
    if (!lane)
        return;
    frame_pool_free(&lane->pool);
    free(lane->losses.pattern.words);
    free(lane->arrivals);
    free(lane->steps);
    free(lane->filling.readings);
    free(lane);
}

static void forget_dropped(struct lane *lane) {
    for (struct frame *frame; (frame = direction_dropped(&lane->direction));)
        frame_pool_return(&lane->pool, frame);
}

static void empty(struct lane *lane) {
    direction_end_cross(&lane->direction);
    for (struct frame *frame; (frame = direction_exit(&lane->direction, LANE_NEVER));)
        frame_pool_return(&lane->pool, frame);
    forget_dropped(lane);
}

// The values of a text, until all of it is right.
struct reading_text {
    struct written link;
    struct written_losses losses;
    uint32_t overhead; // 0 until a family is given
};

static const char *refuse(struct lane *lane, const char *name, const char *why) {
    snprintf(lane->refusal, sizeof lane->refusal, "%s%s", name, why);
    return lane->refusal;
}

static const char *refuse_name(struct lane *lane, struct reading_text *read, const char *name) {
    char others[160] = "";
    for (int i = 0; i < PARAMETERS; i++)
        snprintf(others + strlen(others), sizeof others - strlen(others), "%s, ", losses_names[i]);
    snprintf(others + strlen(others), sizeof others - strlen(others), "family");
    written_refuse_name(&read->link, name, others);
    return refuse(lane, "", read->link.refusal);
}

static const char *read_family(struct lane *lane, const char *value, struct reading_text *read) {
    if (read->overhead)
        return refuse(lane, "family", " is given twice; each name has one line");
    bool is_ipv6 = strcmp(value, "ipv6") == 0;
    if (!is_ipv6 && strcmp(value, "ipv4") != 0)
        return refuse(lane, "family", " must be ipv4 or ipv6");
    read->overhead = is_ipv6 ? LANE_OVERHEAD_IPV6 : LANE_OVERHEAD;
    return NULL;
}

// NULL, or why the text is refused. The text is changed.
static const char *read_text(struct lane *lane, char *text, struct reading_text *read) {
    char *name, *value;
    while (written_next_line(&text, &name, &value)) {
        enum written_answer of_link = written_take(&read->link, name, value);
        if (of_link == WRITTEN_REFUSED)
            return refuse(lane, "", read->link.refusal);
        if (of_link == WRITTEN_TAKEN)
            continue;
        if (strcmp(name, "family") == 0) {
            const char *refusal = read_family(lane, value, read);
            if (refusal)
                return refusal;
            continue;
        }
        enum losses_answer of_losses = written_losses_take(&read->losses, name, value);
        if (of_losses == LOSSES_UNKNOWN)
            return refuse_name(lane, read, name);
        if (of_losses == LOSSES_REFUSED)
            return refuse(lane, read->losses.name, read->losses.why);
    }
    if (!written_end(&read->link))
        return refuse(lane, "", read->link.refusal);
    if (!written_losses_end(&read->losses))
        return refuse(lane, read->losses.name, read->losses.why);
    return NULL;
}

// The times of arrival are as many as the verdicts that are recorded.
static bool provide_arrivals(struct lane *lane, enum losses_model model) {
    if (!lane->arrivals && losses_is_clocked(model))
        lane->arrivals = malloc(LANE_RECORDED * sizeof *lane->arrivals);
    return lane->arrivals || !losses_is_clocked(model);
}

const char *lane_begin(struct lane *lane, const char *text) {
    struct reading_text read;
    char *copy = strdup(text);
    read.overhead = 0;
    written_begin(&read.link);
    written_losses_begin(&read.losses);
    const char *refusal =
        copy ? read_text(lane, copy, &read) : refuse(lane, "", "there is no memory for the text");
    free(copy);
    if (!refusal && !provide_arrivals(lane, read.losses.model))
        refusal = refuse(lane, "", "there is no memory for times of arrival");
    if (refusal) {
        free(read.link.steps);
        free(read.losses.pattern.words);
        return refusal;
    }
    empty(lane);
    free(lane->steps);
    free(lane->losses.pattern.words);
    lane->steps = read.link.steps;
    lane->losses = read.losses;
    lane->overhead = read.overhead ? read.overhead : LANE_OVERHEAD;
    read.link.settings.max_frame_size = ETHERNET_MTU_FRAME;
    direction_init(&lane->direction, &read.link.settings);
    direction_lend(&lane->direction, &lane->pool);
    lane->bad = false;
    lane->burst = 0;
    lane->stays = lane->drawn = lane->stay_ends_us = 0;
    uint64_t recorded = lane->judged < LANE_RECORDED ? lane->judged : LANE_RECORDED;
    memset(lane->verdicts, 0, (recorded + 7) / 8);
    lane->judged = lane->dropped = lane->shorter = 0;
    lane->entries = lane->exits = 0;
    return NULL;
}

void lane_start(struct lane *lane, uint64_t now_ns) {
    direction_start(&lane->direction, now_ns);
}

void lane_begin_filling(struct lane *lane, double full_share, uint64_t window_ns) {
    lane->filling.full_share = full_share;
    lane->filling.window_ns = window_ns;
    lane->filling.first = lane->filling.count = 0;
}

// Readings that are no longer needed make room first.
static void note(struct filling *filling, uint64_t now_ns, uint64_t carried_bytes) {
    if (filling->first && filling->first + filling->count == filling->room) {
        memmove(filling->readings, filling->readings + filling->first,
                filling->count * sizeof *filling->readings);
        filling->first = 0;
    }
    if (filling->count == filling->room) {
        filling->room = filling->room ? 2 * filling->room : 64;
        filling->readings = realloc(filling->readings, filling->room * sizeof *filling->readings);
        if (!filling->readings)
            abort(); // a link that is never full would be a wrong number
    }
    filling->readings[filling->first + filling->count++] = (struct reading){now_ns, carried_bytes};
}

bool lane_is_full(struct lane *lane, uint64_t now_ns) {
    struct filling *filling = &lane->filling;
    note(filling, now_ns, lane->direction.bytes_out);
    const struct reading *begun = &filling->readings[filling->first];
    for (; filling->count > 1 && begun[1].at_ns + filling->window_ns <= now_ns;
         filling->count--, filling->first++)
        begun++;
    double full_bytes_per_s = filling->full_share * (double)lane->direction.settings.rate_bps / 8.0;
    double passed_s = (double)(now_ns - begun->at_ns) / 1e9;
    double carried = (double)(lane->direction.bytes_out - begun->carried_bytes);
    return now_ns - begun->at_ns >= filling->window_ns && carried >= full_bytes_per_s * passed_s;
}

bool lane_send(struct lane *lane, const uint8_t *payload, uint32_t length, uint64_t tag, uint8_t ecn,
               uint64_t now_ns) {
    struct frame *frame = frame_pool_take(&lane->pool);
    if (!frame)
        abort(); // a datagram that vanished uncounted would be a wrong number
    lane->entries = with(with(lane->entries, now_ns), length);
    frame->length = length + lane->overhead;
    frame->ecn = ecn & 3;
    frame->flow = (uint32_t)tag;
    memcpy(frame->bytes, &tag, TAG_SIZE);
    if (length <= LANE_PAYLOAD_MAX) // a longer one is dropped
        memcpy(frame->bytes + TAG_SIZE, payload, length);
    bool is_accepted = direction_arrive(&lane->direction, frame, now_ns) == FATE_ACCEPTED;
    if (!is_accepted)
        frame_pool_return(&lane->pool, frame);
    forget_dropped(lane);
    return is_accepted;
}

uint64_t lane_next_exit(const struct lane *lane) {
    return direction_next_exit(&lane->direction);
}

// Whether the state is bad at a time since the first packet: it never decreases, so stays are drawn one by
// one.
static bool is_bad_at(struct lane *lane, uint64_t since_ns) {
    const struct written_losses *losses = &lane->losses;
    while (lane->stays == 0 || lane->stay_ends_us <= since_ns / 1000) {
        if (lane->stays % LOSSES_STAYS == 0)
            lane->drawn = 0; // the same ones come again
        uint64_t mean_us = lane->stays % 2 ? losses->bad_us : losses->good_us;
        lane->stay_ends_us += losses_stay_us(losses->losses.seed, mean_us, &lane->drawn);
        lane->stays++;
    }
    return lane->stays % 2 == 0;
}

static bool is_listed(const struct written_losses *losses, uint64_t place) {
    return is_dropped(&losses->pattern, losses_place(losses->pattern.length, losses->repeats, place));
}

static bool lose(struct lane *lane, uint64_t n, uint64_t since_ns) {
    const struct written_losses *losses = &lane->losses;
    switch (losses->model) {
    case LOSSES_MODEL_GE_TIME:
        return losses_lose(&losses->losses, n, is_bad_at(lane, since_ns));
    case LOSSES_MODEL_PATTERN:
        return is_listed(losses, n);
    case LOSSES_MODEL_SLOTS:
        return is_listed(losses, since_ns / losses->slot_ns + losses->first_slot);
    default: {
        bool lost = losses_lose_behind(&losses->losses, n, lane->bad, lane->burst);
        lane->burst = lost ? lane->burst + 1 : 0;
        lane->bad = losses_next(&losses->losses, n, lane->bad);
        return lost;
    }
    }
}

// Whether the packet that leaves now is lost. It takes the next number, and its verdict is recorded.
static bool judge(struct lane *lane, uint64_t now_ns) {
    uint64_t n = lane->judged++;
    if (n == 0)
        lane->first_at_ns = now_ns;
    uint64_t since_ns = now_ns - lane->first_at_ns;
    if (losses_is_clocked(lane->losses.model) && n < LANE_RECORDED)
        lane->arrivals[n] = since_ns;
    if (!lose(lane, n, since_ns))
        return false;
    lane->dropped++;
    if (n < LANE_RECORDED)
        lane->verdicts[n / 8] |= 1 << (n % 8);
    return true;
}

bool lane_receive(struct lane *lane, uint64_t now_ns, uint8_t *payload, struct lane_exit *exit) {
    struct frame *frame = direction_exit(&lane->direction, now_ns);
    forget_dropped(lane);
    if (!frame)
        return false;
    bool counts = losses_counts(&lane->losses.losses, frame->length - ETHERNET_HEADER);
    lane->shorter += !counts;
    *exit = (struct lane_exit){
        .at_ns = frame->exit_ns,
        .length = frame->length - lane->overhead,
        .lost = counts && judge(lane, frame->exit_ns),
    };
    exit->ecn = frame->effects & EFFECT_MARK ? ECN_CE : (uint8_t)frame->ecn;
    // Its checksum is wrong, so that the receiver drops it.
    exit->lost |= frame_is_unreadable(frame);
    lane->exits = with(with(lane->exits, exit->at_ns), exit->length);
    memcpy(&exit->tag, frame->bytes, TAG_SIZE);
    memcpy(payload, frame->bytes + TAG_SIZE, exit->length);
    frame_pool_return(&lane->pool, frame);
    return true;
}

struct lane_report lane_report(const struct lane *lane) {
    const struct direction *direction = &lane->direction;
    return (struct lane_report){
        .frames_in = direction->frames_in,
        .bytes_in = direction->bytes_in,
        .frames_out = direction->frames_out,
        .bytes_out = direction->bytes_out,
        .queue_dropped = direction->queue_dropped,
        .oversize_dropped = direction->oversize_dropped,
        .in_flight = direction_in_flight(direction),
        .outage_dropped = direction->outage_dropped,
        .max_queue_bytes = direction->max_queue_bytes,
        .max_queue_packets = direction->max_queue_packets,
        .dropped = lane->dropped,
        .conserved = direction_conserves(direction),
    };
}

void lane_counted(const struct lane *lane, char text[LANE_COUNTED]) {
    size_t length = 0;
    text[0] = 0;
    for (const struct direction_counter *counter = DIRECTION_COUNTERS; counter->name; counter++) {
        uint64_t count = counter->count(&lane->direction);
        if (count)
            length += (size_t)snprintf(text + length, LANE_COUNTED - length, "%s %" PRIu64 "\n",
                                       counter->name, count);
    }
    if (lane->shorter)
        length +=
            (size_t)snprintf(text + length, LANE_COUNTED - length, "shorter %" PRIu64 "\n", lane->shorter);
    assert(length < LANE_COUNTED);
}

uint64_t lane_times(const struct lane *lane) {
    return with(lane->entries, lane->exits);
}

const uint64_t *lane_arrivals(const struct lane *lane) {
    return losses_is_clocked(lane->losses.model) ? lane->arrivals : NULL;
}

const uint8_t *lane_verdicts(const struct lane *lane, uint64_t *packets) {
    *packets = lane->judged < LANE_RECORDED ? lane->judged : LANE_RECORDED;
    return lane->verdicts;
}
