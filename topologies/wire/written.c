#include "written.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct direction_settings settings;

const char *const WRITTEN_QUEUES[] = {
    [QUEUE_DROPTAIL] = "droptail", [QUEUE_CODEL] = "codel",     [QUEUE_PIE] = "pie",
    [QUEUE_FQ_CODEL] = "fq_codel", [QUEUE_DUALPI2] = "dualpi2", NULL};
const char *const WRITTEN_REPEATS[] = {
    [SCHEDULE_LOOPS] = "loop", [SCHEDULE_HOLDS] = "hold", [SCHEDULE_ENDS] = "end", NULL};
const char *const WRITTEN_LAWS[] = {[JITTER_NONE] = "",
                                    [JITTER_UNIFORM] = "uniform",
                                    [JITTER_NORMAL] = "normal",
                                    [JITTER_PARETO] = "pareto",
                                    NULL};
const char WRITTEN_USAGE[] =
    "  rate_bps N, delay_ns N: needed, as is one limit of the queue\n"
    "  queue_bytes N, queue_packets N, queue_ns N: the limit; the last, in the time that the present rate\n"
    "    takes for it, needs a schedule\n"
    "  queue droptail|codel|pie|fq_codel|dualpi2, pie_seed N: that of PIE's draws\n"
    "  codel_target_ns N: that of queue codel and fq_codel\n"
    "  ecn true|false: the queue marks what can be marked, in the place of dropping it\n"
    "  ecn_threshold_ns N: with ecn, it marks what has waited for so long\n"
    "  outage_ns FROM TO: it is out, and drops every frame that comes\n"
    "  schedule loop|hold|end OFFSET_NS: it changes by steps\n"
    "  steps BASE64: four little-endian numbers of 8 bytes for each: its end in ns, the rate, the delay in\n"
    "    ns, and bytes that may leave at the end besides\n"
    "  jitter uniform|normal|pareto MEAN_NS SEED: it delays each frame besides\n"
    "  reorder true|false: a frame that is delayed by less overtakes; else frames stay in their order\n"
    "  duplicate THRESHOLD SEED: a frame leaves twice if its draw of 32 bits is below the threshold\n"
    "  corrupt THRESHOLD SEED: by the same rule, a bit of a frame flips\n"
    "  overtake THRESHOLD SEED BY: by the same rule, a frame leaves before up to BY others that are on their "
    "way\n"
    "  mtu_bytes N: longer packets are dropped\n"
    "  policer RATE_BPS BURST_BYTES: what is beyond is dropped before the queue\n"
    "  cross RATE_BPS ON_NS OFF_NS SEED: full frames of others come at the rate, for times of these means by "
    "turns\n"
    "  shaper_burst_bytes N: a link that was idle sends so much at once; not with a schedule\n"
    "Lines come in any order, and each name once.\n";

static const char *const TRUTHS[] = {"false", "true", NULL};

// One line of printable letters, whatever was in the text.
__attribute__((format(printf, 2, 3))) static enum written_answer refuse(struct written *written,
                                                                        const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(written->refusal, sizeof written->refusal, format, arguments);
    va_end(arguments);
    for (char *letter = written->refusal; *letter; letter++)
        if ((unsigned char)*letter < ' ' || (unsigned char)*letter > '~')
            *letter = '?';
    return WRITTEN_REFUSED;
}

// ---- Values ----

// Whether a value goes on with a word and, unless it is the last, one space; `value` is then behind these.
static bool take_word(const char **value, char *word, size_t size, bool is_last) {
    size_t length = strcspn(*value, " ");
    if (length == 0 || length >= size || ((*value)[length] == 0) != is_last)
        return false;
    memcpy(word, *value, length);
    word[length] = 0;
    *value += length + !is_last;
    return true;
}

static bool take_number(const char **value, uint64_t least, uint64_t most, uint64_t *number, bool is_last) {
    char word[24];
    if (!take_word(value, word, sizeof word, is_last) || strspn(word, "0123456789") != strlen(word))
        return false;
    errno = 0;
    *number = strtoull(word, NULL, 10);
    return !errno && *number >= least && *number <= most;
}

// The place of a word in a list; the first of all is never "".
static bool take_choice(const char **value, const char *const *choices, int *choice, bool is_last) {
    char word[16];
    if (!take_word(value, word, sizeof word, is_last))
        return false;
    for (*choice = 0; choices[*choice]; ++*choice)
        if (strcmp(word, choices[*choice]) == 0)
            return true;
    return false;
}

static bool read_queue(struct written *written, const char *value) {
    int choice;
    if (!take_choice(&value, WRITTEN_QUEUES, &choice, true))
        return false;
    written->settings.queue = (enum queue)choice;
    return true;
}

#define MOST_OUTAGE_NS 1000000000000000ull

static bool read_outage(struct written *written, const char *value) {
    settings *read = &written->settings;
    return take_number(&value, 0, MOST_OUTAGE_NS, &read->outage_from_ns, false) &&
           take_number(&value, read->outage_from_ns + 1, MOST_OUTAGE_NS, &read->outage_to_ns, true);
}

static bool read_schedule(struct written *written, const char *value) {
    struct schedule *schedule = &written->settings.schedule;
    int choice;
    if (!take_choice(&value, WRITTEN_REPEATS, &choice, false))
        return false;
    schedule->repeat = (enum schedule_repeat)choice;
    return take_number(&value, 0, SCHEDULE_MOST_NS, &schedule->offset_ns, true);
}

static bool read_jitter(struct written *written, const char *value) {
    struct jitter *jitter = &written->settings.jitter;
    int choice;
    if (!take_choice(&value, WRITTEN_LAWS, &choice, false))
        return false;
    jitter->law = (enum jitter_law)choice;
    return take_number(&value, 1, JITTER_MOST_MEAN_NS, &jitter->mean_ns, false) &&
           take_number(&value, 0, UINT64_MAX, &jitter->seed, true);
}

// ---- Steps ----

// The six bits of a letter of Base64, or -1.
static int sextet(char letter) {
    static const char LETTERS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *place = letter ? strchr(LETTERS, letter) : NULL;
    return place ? (int)(place - LETTERS) : -1;
}

// The bytes of a text of Base64 with its padding, into memory that has room for 3 bytes of each 4 letters.
static bool decode(const char *text, size_t letters, uint8_t *bytes) {
    int8_t sextets[256];
    for (int letter = 0; letter < 256; letter++)
        sextets[letter] = (int8_t)sextet((char)letter);
    for (size_t i = 0; i < letters; i += 4) {
        uint32_t bits = 0;
        for (int j = 0; j < 4; j++) {
            bool is_padding =
                text[i + j] == '=' && i + 4 == letters && (j == 3 || (j == 2 && text[i + 3] == '='));
            int six = is_padding ? 0 : sextets[(unsigned char)text[i + j]];
            if (six < 0)
                return false;
            bits = bits << 6 | (uint32_t)six;
        }
        for (int j = 0; j < 3; j++)
            *bytes++ = (uint8_t)(bits >> (16 - 8 * j));
    }
    return true;
}

static uint64_t little_endian(const uint8_t *bytes) {
    uint64_t number = 0;
    for (int i = 7; i >= 0; i--)
        number = number << 8 | bytes[i];
    return number;
}

static bool read_steps(struct written *written, const char *value) {
    enum { STEP_BYTES = sizeof(struct schedule_step) };
    size_t letters = strlen(value), padding = 0;
    while (padding < 2 && padding < letters && value[letters - 1 - padding] == '=')
        padding++;
    size_t bytes = letters / 4 * 3 - padding, count = bytes / STEP_BYTES;
    if (letters == 0 || letters % 4 || bytes % STEP_BYTES)
        return false;
    // With room for the padding.
    uint8_t *decoded = calloc(count + 1, STEP_BYTES);
    if (!decoded || !decode(value, letters, decoded)) {
        free(decoded);
        return false;
    }
    struct schedule_step *steps = (struct schedule_step *)decoded;
    for (size_t i = 0; i < count; i++) {
        const uint8_t *at = decoded + i * STEP_BYTES;
        steps[i] = (struct schedule_step){
            .end_ns = little_endian(at),
            .rate_bps = little_endian(at + 8),
            .delay_ns = little_endian(at + 16),
            .burst_bytes = little_endian(at + 24),
        };
    }
    written->steps = steps;
    written_use_steps(written, steps, count);
    return true;
}

// ---- The names ----

enum { MOST_NUMBERS = 4 };

struct name {
    const char *name;
    // Whole numbers one behind another, with where they go; or a truth and where it goes; or what reads the
    // value.
    struct number {
        size_t at;
        uint64_t least, most;
    } numbers[MOST_NUMBERS];
    size_t truth_at;
    bool (*read)(struct written *written, const char *value);
    const char *right;
    bool is_needed;
};

#define AT(field, least, most)                                                                               \
    { offsetof(settings, field), least, most }
#define NUMBER(field, least, most) .name = #field, .numbers = {AT(field, least, most)}
#define TRUTH(field)                                                                                         \
    { .name = #field, .truth_at = offsetof(settings, field), .right = "true or false" }
// A draw of 32 bits about each frame.
#define CHANCE(field) AT(field##_threshold, 0, 1ull << 32), AT(field##_seed, 0, UINT64_MAX)

static const struct name NAMES[] = {
    {NUMBER(rate_bps, 1000, SCHEDULE_MOST_RATE_BPS), .is_needed = true},
    {NUMBER(delay_ns, 0, SCHEDULE_MOST_DELAY_NS), .is_needed = true},
    {NUMBER(queue_bytes, 1, 1000000000000)},
    {NUMBER(queue_packets, 1, 1000000000)},
    {NUMBER(queue_ns, 1, 1000000000000)},
    {"queue", .read = read_queue, .right = "droptail, codel, pie, fq_codel or dualpi2"},
    {"outage_ns",
     {AT(outage_from_ns, 0, MOST_OUTAGE_NS), AT(outage_to_ns, 0, MOST_OUTAGE_NS)},
     .read = read_outage,
     .right = "FROM TO, from 0 to 1000000000000000, the first the smaller"},
    {"schedule", .read = read_schedule, .right = "loop, hold or end, then the offset in ns"},
    {"steps", .read = read_steps, .right = "steps of 32 bytes, in Base64"},
    {"jitter", .read = read_jitter,
     .right = "uniform, normal or pareto, the mean from 1 to 10000000000 ns, then the seed of 64 bits"},
    TRUTH(reorder),
    {"duplicate", {CHANCE(duplicate)}, .right = "a threshold from 0 to 4294967296, then the seed of 64 bits"},
    {"corrupt", {CHANCE(corrupt)}, .right = "a threshold from 0 to 4294967296, then the seed of 64 bits"},
    {"overtake",
     {CHANCE(overtake), AT(overtake_by, 1, OVERTAKING_MOST)},
     .right = "a threshold from 0 to 4294967296, the seed of 64 bits, then how many frames, from 1 to 256"},
    {NUMBER(mtu_bytes, 68, 65521)},
    TRUTH(mtu_icmp),
    {"policer",
     {AT(policer_bps, 1000, SCHEDULE_MOST_RATE_BPS), AT(policer_burst_bytes, 1, BUCKET_MOST_BYTES)},
     .right = "a rate from 1000 to 100000000000 bit/s, then a burst from 1 to 1000000000 bytes"},
    {NUMBER(shaper_burst_bytes, 1, BUCKET_MOST_BYTES)},
    {"cross",
     {AT(cross.bps, 1000, SCHEDULE_MOST_RATE_BPS), AT(cross.on_mean_ns, 1000000, CROSS_MOST_MEAN_NS),
      AT(cross.off_mean_ns, 0, CROSS_MOST_MEAN_NS), AT(cross.seed, 0, UINT64_MAX)},
     .right =
         "a rate from 1000 to 100000000000 bit/s, the mean times on, from 1000000 to 1000000000000 ns, and "
         "off, from 0, then the seed of 64 bits"},
    TRUTH(ecn),
    {NUMBER(ecn_threshold_ns, 1, 1000000000000)},
    {NUMBER(pie_seed, 0, UINT64_MAX)},
    {NUMBER(codel_target_ns, 1, 1000000000000)},
};

enum { NAME_COUNT = sizeof NAMES / sizeof *NAMES };

static bool is_given(const struct written *written, const char *name) {
    for (unsigned i = 0; i < NAME_COUNT; i++)
        if (strcmp(NAMES[i].name, name) == 0)
            return written->given >> i & 1;
    return false;
}

static unsigned numbers_of(const struct name *name) {
    unsigned count = 0;
    while (count < MOST_NUMBERS && name->numbers[count].most)
        count++;
    return count;
}

static bool read_numbers(struct written *written, const struct name *of, const char *value) {
    unsigned count = numbers_of(of);
    bool is_right = true;
    for (unsigned i = 0; is_right && i < count; i++) {
        const struct number *number = &of->numbers[i];
        uint64_t *into = (uint64_t *)((char *)&written->settings + number->at);
        is_right = take_number(&value, number->least, number->most, into, i + 1 == count);
    }
    return is_right;
}

static bool read_truth(struct written *written, const struct name *of, const char *value) {
    int choice;
    bool is_right = take_choice(&value, TRUTHS, &choice, true);
    *((bool *)&written->settings + of->truth_at) = is_right && choice;
    return is_right;
}

static enum written_answer take_of(struct written *written, const struct name *of, const char *value) {
    uint32_t bit = 1u << (of - NAMES);
    if (written->given & bit)
        return refuse(written, "%s is given twice; each name has one line", of->name);
    written->given |= bit;
    if (of->read       ? of->read(written, value)
        : of->truth_at ? read_truth(written, of, value)
                       : read_numbers(written, of, value))
        return WRITTEN_TAKEN;
    const char *space = *value ? " " : "";
    if (of->right)
        return refuse(written, "%s%s%.40s: must be %s", of->name, space, value, of->right);
    return refuse(written, "%s%s%.40s: must be a whole number from %" PRIu64 " to %" PRIu64, of->name, space,
                  value, of->numbers->least, of->numbers->most);
}

void written_begin(struct written *written) {
    *written = (struct written){0};
}

enum written_answer written_take(struct written *written, const char *name, const char *value) {
    for (unsigned i = 0; i < NAME_COUNT; i++)
        if (strcmp(NAMES[i].name, name) == 0)
            return take_of(written, &NAMES[i], value);
    return WRITTEN_UNKNOWN;
}

void written_use_steps(struct written *written, const struct schedule_step *steps, uint64_t count) {
    written->settings.schedule.steps = steps;
    written->settings.schedule.count = count;
}

bool written_end(struct written *written) {
    const settings *read = &written->settings;
    unsigned limits = !!read->queue_bytes + !!read->queue_packets + !!read->queue_ns;
    bool has_steps = read->schedule.count, has_schedule = is_given(written, "schedule");
    for (unsigned i = 0; i < NAME_COUNT; i++)
        if (NAMES[i].is_needed && !(written->given >> i & 1)) {
            refuse(written, "%s is missing: must be a whole number from %" PRIu64 " to %" PRIu64,
                   NAMES[i].name, NAMES[i].numbers->least, NAMES[i].numbers->most);
            return false;
        }
    if (limits != 1)
        refuse(written, "%s; a queue has one limit: queue_bytes, queue_packets or queue_ns",
               limits ? "two limits are given" : "no limit is given");
    else if (has_steps != has_schedule)
        refuse(written, "schedule and steps must be given together");
    else if (read->queue_ns && !has_steps)
        refuse(written, "queue_ns needs a schedule; without one, give queue_bytes or queue_packets");
    else if (read->queue == QUEUE_DUALPI2 && !read->ecn)
        refuse(written, "queue dualpi2: must have ecn true, to mark");
    else if (read->mtu_icmp && !read->mtu_bytes)
        refuse(written, "mtu_icmp true: must have mtu_bytes, to tell of it");
    else if (has_steps && read->shaper_burst_bytes)
        refuse(written, "shaper_burst_bytes is given with a schedule, whose steps have bursts of their own");
    else if (has_steps && !schedule_is_right(&read->schedule))
        refuse(written, "steps: each must end after the one before, within its bounds, and some must carry");
    else
        return true;
    return false;
}

// ---- What was read ----

static void print_numbers(const struct written *written, const struct name *name, FILE *out) {
    unsigned count = numbers_of(name);
    for (unsigned i = 0; i < count; i++)
        fprintf(out, "%s%" PRIu64,
                i           ? ","
                : count > 1 ? "["
                            : "",
                *(const uint64_t *)((const char *)&written->settings + name->numbers[i].at));
    if (count > 1)
        fputc(']', out);
}

void written_print(const struct written *written, FILE *out) {
    for (unsigned i = 0; i < NAME_COUNT; i++) {
        const struct name *name = &NAMES[i];
        if (!(written->given >> i & 1) || !(numbers_of(name) || name->truth_at))
            continue;
        fprintf(out, "\"%s\":", name->name);
        if (name->truth_at)
            fputs(TRUTHS[*((const bool *)&written->settings + name->truth_at)], out);
        else
            print_numbers(written, name, out);
        fputc(',', out);
    }
}

// ---- A text ----

bool written_next_line(char **text, char **name, char **value) {
    if (!**text)
        return false;
    char *end = strchr(*text, '\n');
    *name = *text;
    *text = end ? end + 1 : *text + strlen(*text);
    if (end)
        *end = 0;
    char *space = strchr(*name, ' ');
    *value = space ? space + 1 : *name + strlen(*name);
    if (space)
        *space = 0;
    return true;
}

void written_refuse_name(struct written *written, const char *name, const char *others) {
    char names[400] = "";
    for (unsigned i = 0; i < NAME_COUNT; i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i ? ", " : "", NAMES[i].name);
    refuse(written, "%.20s is no name: must be one of %s%s%s", *name ? name : "an empty line", names,
           *others ? ", " : "", others);
}

bool written_read(struct written *written, char *text) {
    char *name, *value;
    while (written_next_line(&text, &name, &value)) {
        enum written_answer answer = written_take(written, name, value);
        if (answer == WRITTEN_UNKNOWN)
            written_refuse_name(written, name, "");
        if (answer != WRITTEN_TAKEN)
            return false;
    }
    return written_end(written);
}
