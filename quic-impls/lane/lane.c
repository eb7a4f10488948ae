#include "lane.h"

#include <stdlib.h>
#include <string.h>

#include "../../dropper/losses.h"
#include "../../topologies/wire/direction.h"

// What a frame holds here: the tag, then the payload.
enum { TAG_SIZE = sizeof(uint64_t), ETHERNET_MTU_FRAME = 1514 };

_Static_assert(LANE_PAYLOAD_MAX + LANE_OVERHEAD == ETHERNET_MTU_FRAME, "a full datagram is a full frame");

struct lane {
    struct direction direction;
    struct frame_pool pool;
    struct losses losses;
    bool bad;
    uint8_t *pattern;
    uint64_t pattern_packets;
    bool pattern_repeats;
    uint64_t slot_ns, first_slot;
    uint64_t mean_us[2]; // of a stay in the good and in the bad state; 0 where packets clock the losses
    losses_u64 stays, drawn, stay_ends_us;
    uint64_t first_at_ns;
    uint64_t *arrivals; // NULL until the first trial whose losses are clocked by time
    struct schedule_step *steps;
    uint64_t judged, dropped;
    uint64_t entries, exits; // hashes of their times and lengths
    uint8_t verdicts[LANE_RECORDED / 8];
};

static bool bit(const uint8_t *bits, uint64_t n) {
    return bits[n / 8] >> (n % 8) & 1;
}

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
    free(lane->pattern);
    free(lane->arrivals);
    free(lane->steps);
    free(lane);
}

static void forget_dropped(struct lane *lane) {
    for (struct frame *frame; (frame = direction_dropped(&lane->direction));)
        frame_pool_return(&lane->pool, frame);
}

static void empty(struct lane *lane) {
    for (struct frame *frame; (frame = direction_exit(&lane->direction, LANE_NEVER));)
        frame_pool_return(&lane->pool, frame);
    forget_dropped(lane);
}

// Whether the copy could be made; NULL for no pattern.
static bool copy_pattern(const struct lane_settings *settings, uint8_t **copy) {
    uint64_t size = settings->pattern_packets / 8 + 1;
    *copy = NULL;
    if (!settings->pattern)
        return true;
    if (!(*copy = calloc(1, size)))
        return false;
    memcpy(*copy, settings->pattern, (settings->pattern_packets + 7) / 8);
    return true;
}

// The same of the schedule's steps.
static bool copy_steps(const struct lane_settings *settings, struct schedule_step **copy) {
    uint64_t count = settings->schedule.count;
    *copy = NULL;
    if (!count)
        return true;
    if (!(*copy = calloc(count, sizeof **copy)))
        return false;
    memcpy(*copy, settings->schedule.steps, count * sizeof **copy);
    return true;
}

static bool is_clocked(const struct lane *lane) {
    return lane->slot_ns || lane->mean_us[0];
}

// The times of arrival are as many as the verdicts that are recorded.
static bool provide_arrivals(struct lane *lane, const struct lane_settings *settings) {
    if (!lane->arrivals && (settings->slot_ns || settings->good_us))
        lane->arrivals = malloc(LANE_RECORDED * sizeof *lane->arrivals);
    return lane->arrivals || !(settings->slot_ns || settings->good_us);
}

static bool is_right(const struct lane_settings *settings) {
    bool has_schedule = settings->schedule.count;
    int limits = (settings->queue_bytes != 0) + (settings->queue_packets != 0) + (settings->queue_ns != 0);
    bool has_stays = settings->good_us || settings->bad_us;
    bool stays_are_right =
        !has_stays || (settings->good_us && settings->bad_us && !settings->pattern &&
                       settings->good_us <= LOSSES_MEAN_US_MAX && settings->bad_us <= LOSSES_MEAN_US_MAX);
    return stays_are_right && (!settings->slot_ns || settings->pattern) && settings->rate_bps &&
           limits == 1 && (has_schedule || !settings->queue_ns) &&
           (!has_schedule || schedule_is_right(&settings->schedule)) && jitter_is_right(&settings->jitter);
}

bool lane_begin(struct lane *lane, const struct lane_settings *settings) {
    uint8_t *pattern;
    struct schedule_step *steps;
    if (!is_right(settings) || !provide_arrivals(lane, settings) || !copy_pattern(settings, &pattern))
        return false;
    if (!copy_steps(settings, &steps)) {
        free(pattern);
        return false;
    }
    empty(lane);
    free(lane->steps);
    lane->steps = steps;
    struct schedule schedule = settings->schedule;
    schedule.steps = steps;
    direction_init(&lane->direction, &(struct direction_settings){
                                         .rate_bps = settings->rate_bps,
                                         .delay_ns = settings->delay_ns,
                                         .queue_bytes = settings->queue_bytes,
                                         .queue_packets = settings->queue_packets,
                                         .max_frame_size = ETHERNET_MTU_FRAME,
                                         .codel = settings->codel,
                                         .schedule = schedule,
                                         .queue_ns = settings->queue_ns,
                                         .jitter = settings->jitter,
                                         .reorder = settings->reorder,
                                     });
    lane->losses = (struct losses){
        .seed = settings->seed,
        .loss_good = settings->loss_good,
        .loss_bad = settings->loss_bad,
        .good_to_bad = settings->good_to_bad,
        .bad_to_good = settings->bad_to_good,
    };
    lane->bad = false;
    free(lane->pattern);
    lane->pattern = pattern;
    lane->pattern_packets = settings->pattern_packets;
    lane->pattern_repeats = settings->pattern_repeats;
    lane->slot_ns = settings->slot_ns;
    lane->first_slot =
        losses_first_slot(settings->seed, settings->pattern_packets, settings->pattern_repeats);
    lane->mean_us[0] = settings->good_us;
    lane->mean_us[1] = settings->bad_us;
    lane->stays = lane->drawn = lane->stay_ends_us = 0;
    uint64_t recorded = lane->judged < LANE_RECORDED ? lane->judged : LANE_RECORDED;
    memset(lane->verdicts, 0, (recorded + 7) / 8);
    lane->judged = lane->dropped = 0;
    lane->entries = lane->exits = 0;
    return true;
}

void lane_start(struct lane *lane, uint64_t now_ns) {
    direction_start(&lane->direction, now_ns);
}

void lane_start_outage(struct lane *lane, uint64_t now_ns, uint64_t from_ns, uint64_t to_ns) {
    lane->direction.settings.outage_from_ns = from_ns;
    lane->direction.settings.outage_to_ns = to_ns;
    direction_start(&lane->direction, now_ns);
}

bool lane_send(struct lane *lane, const uint8_t *payload, uint32_t length, uint64_t tag, uint64_t now_ns) {
    struct frame *frame = frame_pool_take(&lane->pool);
    if (!frame)
        abort(); // a datagram that vanished uncounted would be a wrong number
    lane->entries = with(with(lane->entries, now_ns), length);
    frame->length = length + LANE_OVERHEAD;
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
    while (lane->stays == 0 || lane->stay_ends_us <= since_ns / 1000) {
        if (lane->stays % LOSSES_STAYS == 0)
            lane->drawn = 0; // the same ones come again
        lane->stay_ends_us += losses_stay_us(lane->losses.seed, lane->mean_us[lane->stays % 2], &lane->drawn);
        lane->stays++;
    }
    return lane->stays % 2 == 0;
}

static bool lose(struct lane *lane, uint64_t n, uint64_t since_ns) {
    if (lane->mean_us[0])
        return losses_lose(&lane->losses, n, is_bad_at(lane, since_ns));
    if (lane->pattern) {
        uint64_t place = lane->slot_ns ? since_ns / lane->slot_ns + lane->first_slot : n;
        place = losses_place(lane->pattern_packets, lane->pattern_repeats, place);
        return place < lane->pattern_packets && bit(lane->pattern, place);
    }
    bool lost = losses_lose(&lane->losses, n, lane->bad);
    lane->bad = losses_next(&lane->losses, n, lane->bad);
    return lost;
}

bool lane_receive(struct lane *lane, uint64_t now_ns, uint8_t *payload, struct lane_exit *exit) {
    struct frame *frame = direction_exit(&lane->direction, now_ns);
    forget_dropped(lane);
    if (!frame)
        return false;
    uint64_t n = lane->judged++;
    if (n == 0)
        lane->first_at_ns = frame->exit_ns;
    uint64_t since_ns = frame->exit_ns - lane->first_at_ns;
    if (is_clocked(lane) && n < LANE_RECORDED)
        lane->arrivals[n] = since_ns;
    *exit = (struct lane_exit){
        .at_ns = frame->exit_ns,
        .length = frame->length - LANE_OVERHEAD,
        .lost = lose(lane, n, since_ns),
    };
    lane->exits = with(with(lane->exits, exit->at_ns), exit->length);
    memcpy(&exit->tag, frame->bytes, TAG_SIZE);
    memcpy(payload, frame->bytes + TAG_SIZE, exit->length);
    frame_pool_return(&lane->pool, frame);
    if (exit->lost) {
        lane->dropped++;
        if (n < LANE_RECORDED)
            lane->verdicts[n / 8] |= 1 << (n % 8);
    }
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
        .max_queue_bytes = direction->max_queue_bytes,
        .max_queue_packets = direction->max_queue_packets,
        .dropped = lane->dropped,
        .conserved = direction_conserves(direction),
    };
}

uint64_t lane_times(const struct lane *lane) {
    return with(lane->entries, lane->exits);
}

uint64_t lane_outage_dropped(const struct lane *lane) {
    return lane->direction.outage_dropped;
}

const uint64_t *lane_arrivals(const struct lane *lane) {
    return is_clocked(lane) ? lane->arrivals : NULL;
}

const uint8_t *lane_verdicts(const struct lane *lane, uint64_t *packets) {
    *packets = lane->judged < LANE_RECORDED ? lane->judged : LANE_RECORDED;
    return lane->verdicts;
}
