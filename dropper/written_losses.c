#include "written_losses.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define BIT(parameter) (1u << PARAMETER_##parameter)

static const struct model {
    const char *name;
    enum losses_model model;
    uint32_t needs, takes;
} models[] = {
    {"none", LOSSES_MODEL_UNIFORM, 0, 0},
    {"uniform", LOSSES_MODEL_UNIFORM, BIT(P), BIT(BURST_MAX)},
    {"ge", LOSSES_MODEL_GILBERT_ELLIOTT, BIT(P) | BIT(R), BIT(K) | BIT(H) | BIT(BURST_MAX)},
    {"markov", LOSSES_MODEL_GILBERT_ELLIOTT, BIT(P) | BIT(R), BIT(BURST_MAX)},
    {"pattern", LOSSES_MODEL_PATTERN, BIT(DROP), BIT(LENGTH) | BIT(REPEAT)},
    {"beginning", LOSSES_MODEL_BEGINNING, BIT(P) | BIT(LENGTH), 0},
    {"ge-time", LOSSES_MODEL_GE_TIME, BIT(GOOD_S) | BIT(BAD_S), BIT(K) | BIT(H)},
    {"slots", LOSSES_MODEL_SLOTS, BIT(SLOT_MS) | BIT(DROP), BIT(LENGTH) | BIT(REPEAT)},
};

const char losses_usage[] =
    "MODEL    --model none\n"
    "         --model uniform --p P\n"
    "         --model ge --p P --r R [--k K] [--h H]    K, H: probability of delivery in the good, bad "
    "state\n"
    "         --model markov --p P --r R                ge with K = 1 and H = 0\n"
    "         uniform, ge and markov: [--burst-max N]   the most that are lost in a row\n"
    "         --model pattern --drop LIST|--pattern-file FILE [--length N] [--repeat]    LIST: 3,7-9\n"
    "         --model beginning --p P --length N        uniform, of the first N packets\n"
    "         --model ge-time --good-s S --bad-s S [--k K] [--h H]    mean seconds in the good, bad state\n"
    "         --model slots --slot-ms MS --drop LIST|--pattern-file FILE [--length N] [--repeat]\n"
    "         any but none: [--only-longer-than BYTES]  only longer IP packets count, and can be lost\n";

enum { MODELS = sizeof(models) / sizeof(*models) };

const char *const losses_names[PARAMETERS] = {
    [PARAMETER_MODEL] = "model",
    [PARAMETER_SEED] = "seed",
    [PARAMETER_P] = "p",
    [PARAMETER_R] = "r",
    [PARAMETER_K] = "k",
    [PARAMETER_H] = "h",
    [PARAMETER_GOOD_S] = "good_s",
    [PARAMETER_BAD_S] = "bad_s",
    [PARAMETER_SLOT_MS] = "slot_ms",
    [PARAMETER_DROP] = "drop",
    [PARAMETER_LENGTH] = "length",
    [PARAMETER_REPEAT] = "repeat",
    [PARAMETER_BURST_MAX] = "burst_max",
    [PARAMETER_ONLY_LONGER_THAN] = "only_longer_than",
};

const char *losses_model_name(unsigned model) {
    for (unsigned i = 1; i < MODELS; i++) /* uniform is not `none` */
        if (models[i].model == model)
            return models[i].name;
    return NULL;
}

static void make_printable(char *line) {
    for (; *line; line++)
        if ((unsigned char)*line < ' ' || (unsigned char)*line > '~')
            *line = '?';
}

__attribute__((format(printf, 3, 4))) static bool refuse_line(struct written_losses *written,
                                                              const char *name, const char *format, ...) {
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(written->why, sizeof(written->why), format, arguments);
    va_end(arguments);
    snprintf(written->name, sizeof(written->name), "%s", name);
    make_printable(written->name);
    make_printable(written->why);
    return false;
}

#define refuse_parameter(written, parameter, ...) refuse_line(written, losses_names[parameter], __VA_ARGS__)

/* ---- Values ---- */

static bool parse_real(const char *text, double least, double most, double *value) {
    char *end;

    *value = strtod(text, &end);
    return *text && !*end && strspn(text, "0123456789.eE+-") == strlen(text) && *value >= least &&
           *value <= most;
}

static bool read_probability(struct written_losses *written, enum losses_parameter parameter,
                             const char *text) {
    return parse_real(text, 0, 1, &written->probabilities[parameter]) ||
           refuse_parameter(written, parameter, " %.40s: must be a probability, from 0 to 1", text);
}

/* A length of time as so many of a shorter unit, of which there are a million in one of the text's. */
static bool read_time(struct written_losses *written, enum losses_parameter parameter, const char *text,
                      double least, double most) {
    double value;

    if (!parse_real(text, least, most, &value))
        return refuse_parameter(written, parameter, " %.40s: must be a time from %g to %g", text, least,
                                most);
    written->numbers[parameter] = (uint64_t)rint(value * 1e6);
    return true;
}

static bool read_integer(struct written_losses *written, enum losses_parameter parameter, const char *text,
                         uint64_t most) {
    char *end;

    errno = 0;
    written->numbers[parameter] = strtoull(text, &end, 10);
    if (!isdigit((unsigned char)*text) || *end || errno || written->numbers[parameter] > most)
        return refuse_parameter(written, parameter, " %.40s: must be an integer from 0 to %llu", text,
                                (unsigned long long)most);
    return true;
}

static bool read_drop(struct written_losses *written, const char *text) {
    char why[120];

    return parse_drop_list(text, &written->pattern, why, sizeof(why)) ||
           refuse_parameter(written, PARAMETER_DROP, ": %s", why);
}

static bool read_repeat(struct written_losses *written, const char *text) {
    written->repeats = strcmp(text, "true") == 0;
    return written->repeats || strcmp(text, "false") == 0 ||
           refuse_parameter(written, PARAMETER_REPEAT, " %.40s: must be true or false", text);
}

static void list_models(char *list, size_t size) {
    *list = 0;
    for (int i = 0; i < MODELS; i++)
        snprintf(list + strlen(list), size - strlen(list), "%s%s",
                 i == 0            ? ""
                 : i + 1 == MODELS ? " or "
                                   : ", ",
                 models[i].name);
}

static bool read_model(struct written_losses *written, const char *text) {
    char right[100];

    for (written->named = 0; written->named < MODELS; written->named++)
        if (strcmp(models[written->named].name, text) == 0)
            return true;
    list_models(right, sizeof(right));
    return refuse_parameter(written, PARAMETER_MODEL, " %.40s: must be %s", text, right);
}

static bool read_value(struct written_losses *written, enum losses_parameter parameter, const char *text) {
    switch (parameter) {
    case PARAMETER_MODEL:
        return read_model(written, text);
    case PARAMETER_SEED:
        return read_integer(written, parameter, text, UINT64_MAX);
    case PARAMETER_GOOD_S:
    case PARAMETER_BAD_S:
        return read_time(written, parameter, text, 1e-5, 4000);
    case PARAMETER_SLOT_MS:
        return read_time(written, parameter, text, 1, 1000);
    case PARAMETER_DROP:
        return read_drop(written, text);
    case PARAMETER_LENGTH:
        return read_integer(written, parameter, text, LOSSES_PACKETS_MAX);
    case PARAMETER_REPEAT:
        return read_repeat(written, text);
    case PARAMETER_BURST_MAX:
        return read_integer(written, parameter, text, LOSSES_BURST_MAX);
    case PARAMETER_ONLY_LONGER_THAN:
        return read_integer(written, parameter, text, LOSSES_LONGEST_PACKET);
    default: /* p, r, k and h */
        return read_probability(written, parameter, text);
    }
}

/* ---- The whole ---- */

/* rint() rounds halves to even, as Python's round() and numpy.rint() do. */
static uint64_t threshold(double probability) {
    return (uint64_t)rint(probability * 4294967296.0);
}

static double delivery(const struct written_losses *written, enum losses_parameter parameter, double absent) {
    return written->given >> parameter & 1 ? written->probabilities[parameter] : absent;
}

static void make_thresholds(struct written_losses *written) {
    struct losses *losses = &written->losses;

    if (written->model == LOSSES_MODEL_UNIFORM || written->model == LOSSES_MODEL_BEGINNING)
        losses->loss_good = threshold(written->probabilities[PARAMETER_P]);
    if (written->model == LOSSES_MODEL_GILBERT_ELLIOTT || written->model == LOSSES_MODEL_GE_TIME) {
        losses->loss_good = threshold(1 - delivery(written, PARAMETER_K, 1));
        losses->loss_bad = threshold(1 - delivery(written, PARAMETER_H, 0));
        losses->good_to_bad = threshold(written->probabilities[PARAMETER_P]);
        losses->bad_to_good = threshold(written->probabilities[PARAMETER_R]);
    }
}

static bool make_pattern(struct written_losses *written) {
    uint64_t length = written->numbers[PARAMETER_LENGTH];

    if (!(written->given & BIT(DROP)))
        return true;
    if (written->given & BIT(LENGTH) && length < written->pattern.length)
        return refuse_parameter(written, PARAMETER_LENGTH,
                                " %llu: packet %llu is dropped, so the pattern is at least %llu long",
                                (unsigned long long)length, (unsigned long long)written->pattern.length - 1,
                                (unsigned long long)written->pattern.length);
    if (written->given & BIT(LENGTH) && !extend(&written->pattern, length))
        return refuse_parameter(written, PARAMETER_LENGTH, " %llu: there is no memory for it",
                                (unsigned long long)length);
    if (written->slot_ns)
        written->first_slot =
            losses_first_slot(written->losses.seed, written->pattern.length, written->repeats);
    return true;
}

/* Whether the model takes all that is given, and is given all that it needs. */
static bool is_whole(struct written_losses *written, const struct model *model) {
    uint32_t takes = model->needs | model->takes | BIT(MODEL) | BIT(SEED);

    if (model->needs) /* any but none may lose packets by their size */
        takes |= BIT(ONLY_LONGER_THAN);

    for (enum losses_parameter parameter = 0; parameter < PARAMETERS; parameter++)
        if (written->given & ~takes & 1u << parameter)
            return refuse_parameter(written, parameter, ": model %s does not take it", model->name);
    for (enum losses_parameter parameter = 0; parameter < PARAMETERS; parameter++)
        if (model->needs & ~written->given & 1u << parameter)
            return refuse_parameter(written, parameter, " is missing: model %s needs it", model->name);
    return true;
}

void written_losses_begin(struct written_losses *written) {
    *written = (struct written_losses){0};
}

enum losses_answer written_losses_take(struct written_losses *written, const char *name, const char *value) {
    for (enum losses_parameter parameter = 0; parameter < PARAMETERS; parameter++) {
        if (strcmp(losses_names[parameter], name) != 0)
            continue;
        if (written->given >> parameter & 1) {
            refuse_parameter(written, parameter, ": given twice");
            return LOSSES_REFUSED;
        }
        written->given |= 1u << parameter;
        return read_value(written, parameter, value) ? LOSSES_TAKEN : LOSSES_REFUSED;
    }
    return LOSSES_UNKNOWN;
}

bool written_losses_end(struct written_losses *written) {
    if (written->given && !(written->given & BIT(MODEL))) {
        char right[100];

        list_models(right, sizeof(right));
        return refuse_parameter(written, PARAMETER_MODEL, " is missing: %s", right);
    }
    if (!is_whole(written, &models[written->named]))
        return false;
    written->model = models[written->named].model;
    written->losses.seed = written->numbers[PARAMETER_SEED];
    written->good_us = written->numbers[PARAMETER_GOOD_S];
    written->bad_us = written->numbers[PARAMETER_BAD_S];
    written->slot_ns = written->numbers[PARAMETER_SLOT_MS];
    make_thresholds(written);
    written->losses.burst_max = written->numbers[PARAMETER_BURST_MAX];
    written->losses.only_longer_than = written->numbers[PARAMETER_ONLY_LONGER_THAN];
    if (written->given & BIT(BURST_MAX) && !written->losses.burst_max)
        return refuse_parameter(written, PARAMETER_BURST_MAX, " 0: must be at least 1");
    if (written->model == LOSSES_MODEL_BEGINNING &&
        !(written->losses.length = written->numbers[PARAMETER_LENGTH]))
        return refuse_parameter(written, PARAMETER_LENGTH, " 0: must be at least 1 for model beginning");
    return make_pattern(written);
}

bool written_losses_read(struct written_losses *written, char *text) {
    for (char *line; (line = strsep(&text, "\n")) && (*line || text);) {
        char *name = strsep(&line, " ");
        enum losses_answer answer = written_losses_take(written, name, line ? line : "");

        if (answer == LOSSES_UNKNOWN)
            refuse_line(written, *name ? name : "a line", ": no parameter of losses has this name");
        if (answer != LOSSES_TAKEN)
            return false;
    }
    return written_losses_end(written);
}
