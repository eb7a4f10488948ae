#include "command_line.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "failure.h"

const char usage[] =
    "dropper: drops packets by a seeded loss model, at one side of one interface\n"
    "\n"
    "  dropper attach PLACE MODEL [--seed N] [FILTER] [--record PACKETS] [--json]\n"
    "  dropper show   PLACE [--json]     the model and the counters\n"
    "  dropper log    PLACE [--json]     the packets dropped so far, as --drop takes them\n"
    "  dropper detach PLACE [--json]\n"
    "\n"
    "PLACE    --dev INTERFACE --ingress|--egress [--netns PATH|NAME|PID]\n"
    "MODEL    --model none\n"
    "         --model uniform --p P\n"
    "         --model ge --p P --r R [--k K] [--h H]    K, H: probability of delivery in the good, bad "
    "state\n"
    "         --model markov --p P --r R                ge with K = 1 and H = 0\n"
    "         --model pattern --drop LIST|--pattern-file FILE [--length N] [--repeat]    LIST: 3,7-9\n"
    "         --model ge-time --good-s S --bad-s S [--k K] [--h H]    mean seconds in the good, bad state\n"
    "         --model slots --slot-ms MS --drop LIST|--pattern-file FILE [--length N] [--repeat]\n"
    "FILTER   [--family any|ipv4|ipv6] [--protocol any|udp|tcp] [--port N]\n";

enum option_name {
    OPTION_DEV,
    OPTION_INGRESS,
    OPTION_EGRESS,
    OPTION_NETNS,
    OPTION_JSON,
    OPTION_MODEL, /* from here on: attach only */
    OPTION_P,
    OPTION_R,
    OPTION_K,
    OPTION_H,
    OPTION_GOOD_S,
    OPTION_BAD_S,
    OPTION_SLOT_MS,
    OPTION_DROP,
    OPTION_PATTERN_FILE,
    OPTION_LENGTH,
    OPTION_REPEAT,
    OPTION_SEED,
    OPTION_FAMILY,
    OPTION_PROTOCOL,
    OPTION_PORT,
    OPTION_RECORD,
    OPTIONS,
};

static const struct option options[] = {
    [OPTION_DEV] = {"dev", required_argument, NULL, 0},
    [OPTION_INGRESS] = {"ingress", no_argument, NULL, 0},
    [OPTION_EGRESS] = {"egress", no_argument, NULL, 0},
    [OPTION_NETNS] = {"netns", required_argument, NULL, 0},
    [OPTION_JSON] = {"json", no_argument, NULL, 0},
    [OPTION_MODEL] = {"model", required_argument, NULL, 0},
    [OPTION_P] = {"p", required_argument, NULL, 0},
    [OPTION_R] = {"r", required_argument, NULL, 0},
    [OPTION_K] = {"k", required_argument, NULL, 0},
    [OPTION_H] = {"h", required_argument, NULL, 0},
    [OPTION_GOOD_S] = {"good-s", required_argument, NULL, 0},
    [OPTION_BAD_S] = {"bad-s", required_argument, NULL, 0},
    [OPTION_SLOT_MS] = {"slot-ms", required_argument, NULL, 0},
    [OPTION_DROP] = {"drop", required_argument, NULL, 0},
    [OPTION_PATTERN_FILE] = {"pattern-file", required_argument, NULL, 0},
    [OPTION_LENGTH] = {"length", required_argument, NULL, 0},
    [OPTION_REPEAT] = {"repeat", no_argument, NULL, 0},
    [OPTION_SEED] = {"seed", required_argument, NULL, 0},
    [OPTION_FAMILY] = {"family", required_argument, NULL, 0},
    [OPTION_PROTOCOL] = {"protocol", required_argument, NULL, 0},
    [OPTION_PORT] = {"port", required_argument, NULL, 0},
    [OPTION_RECORD] = {"record", required_argument, NULL, 0},
    [OPTIONS] = {0},
};

/* By option: its value, "" if it takes none, NULL if it was not given. */
typedef const char *given_options[OPTIONS];

/* ---- Words and numbers ---- */

struct word {
    const char *text;
    int value;
};

static int parse_word(const char *option, const char *text, const struct word *words, const char *right) {
    for (; words->text; words++)
        if (strcmp(text, words->text) == 0)
            return words->value;
    refuse("%s%s%s: must be %s", option, *option ? " " : "", text, right);
}

static uint64_t parse_integer(const char *option, const char *text, uint64_t minimum, uint64_t maximum) {
    char *end;
    uint64_t value;

    errno = 0;
    value = strtoull(text, &end, 10);
    if (!isdigit((unsigned char)*text) || *end || errno || value < minimum || value > maximum)
        refuse("%s %s: must be an integer from %llu to %llu", option, text, (unsigned long long)minimum,
               (unsigned long long)maximum);
    return value;
}

static double parse_probability(const char *option, const char *text) {
    char *end;
    double value = strtod(text, &end);

    if (end == text || isspace((unsigned char)*text) || *end || !(value >= 0 && value <= 1))
        refuse("%s %s: must be a probability, from 0 to 1", option, text);
    return value;
}

/* A length of time as so many of a shorter unit, of which there are `units` in one of the option's. */
static uint64_t parse_time(const char *option, const char *text, double units, double minimum,
                           double maximum) {
    char *end;
    double value = strtod(text, &end);

    if (end == text || isspace((unsigned char)*text) || *end || !(value >= minimum && value <= maximum))
        refuse("%s %s: must be a time from %g to %g", option, text, minimum, maximum);
    return (uint64_t)rint(value * units);
}

/* rint() rounds halves to even, as Python's round() and numpy.rint() do. */
static uint64_t threshold(double probability) {
    return (uint64_t)rint(probability * 4294967296.0);
}

/* ---- Models ---- */

enum model_name {
    MODEL_NONE = 1,
    MODEL_UNIFORM,
    MODEL_GE,
    MODEL_MARKOV,
    MODEL_PATTERN,
    MODEL_GE_TIME,
    MODEL_SLOTS,
};

static enum model_name parse_model(const char *text) {
    static const struct word models[] = {
        {"none", MODEL_NONE},       {"uniform", MODEL_UNIFORM},
        {"ge", MODEL_GE},           {"markov", MODEL_MARKOV},
        {"pattern", MODEL_PATTERN}, {"ge-time", MODEL_GE_TIME},
        {"slots", MODEL_SLOTS},     {0},
    };
    const char *right = "none, uniform, ge, markov, pattern, ge-time or slots";

    if (!text)
        refuse("--model is missing: %s", right);
    return parse_word("--model", text, models, right);
}

static bool model_takes(enum model_name model, enum option_name option) {
    switch (option) {
    case OPTION_P:
        return model == MODEL_UNIFORM || model == MODEL_GE || model == MODEL_MARKOV;
    case OPTION_R:
        return model == MODEL_GE || model == MODEL_MARKOV;
    case OPTION_K:
    case OPTION_H:
        return model == MODEL_GE || model == MODEL_GE_TIME;
    case OPTION_GOOD_S:
    case OPTION_BAD_S:
        return model == MODEL_GE_TIME;
    case OPTION_SLOT_MS:
        return model == MODEL_SLOTS;
    default: /* OPTION_DROP to OPTION_REPEAT */
        return model == MODEL_PATTERN || model == MODEL_SLOTS;
    }
}

/* An option that the model needs, unless there is a value for its absence. */
#define NEEDED NULL

struct value {
    char name[16];
    const char *text;
};

static struct value value_of(given_options given, enum option_name option, const char *absent) {
    struct value value = {.text = given[option] ? given[option] : absent};

    snprintf(value.name, sizeof(value.name), "--%s", options[option].name);
    if (!value.text)
        refuse("%s is missing: model %s needs it", value.name, given[OPTION_MODEL]);
    return value;
}

static double probability(given_options given, enum option_name option, const char *absent) {
    struct value value = value_of(given, option, absent);

    return parse_probability(value.name, value.text);
}

static uint64_t mean_us(given_options given, enum option_name option) {
    struct value value = value_of(given, option, NEEDED);

    return parse_time(value.name, value.text, 1e6, 1e-5, 4000);
}

static uint64_t slot_ns(given_options given) {
    struct value value = value_of(given, OPTION_SLOT_MS, NEEDED);

    return parse_time(value.name, value.text, 1e6, 1, 1000);
}

static struct verdicts read_pattern(given_options given) {
    struct verdicts pattern;

    if (!given[OPTION_DROP] == !given[OPTION_PATTERN_FILE])
        refuse("model %s needs either --drop or --pattern-file", given[OPTION_MODEL]);
    pattern = given[OPTION_DROP] ? parse_drop_list("--drop", given[OPTION_DROP])
                                 : read_drop_list("--pattern-file", given[OPTION_PATTERN_FILE]);
    if (given[OPTION_LENGTH])
        extend(&pattern, "--length", parse_integer("--length", given[OPTION_LENGTH], 0, DROPPER_PACKETS_MAX));
    return pattern;
}

static void read_model(given_options given, struct request *request) {
    struct dropper_configuration *configuration = &request->configuration;
    enum model_name model = parse_model(given[OPTION_MODEL]);

    for (enum option_name option = OPTION_P; option <= OPTION_REPEAT; option++)
        if (given[option] && !model_takes(model, option))
            refuse("--%s: model %s does not take it", options[option].name, given[OPTION_MODEL]);

    configuration->model = DROPPER_MODEL_UNIFORM;
    if (model == MODEL_UNIFORM)
        configuration->losses.loss_good = threshold(probability(given, OPTION_P, NEEDED));
    if (model == MODEL_GE || model == MODEL_MARKOV) {
        configuration->model = DROPPER_MODEL_GILBERT_ELLIOTT;
        configuration->losses.good_to_bad = threshold(probability(given, OPTION_P, NEEDED));
        configuration->losses.bad_to_good = threshold(probability(given, OPTION_R, NEEDED));
    }
    if (model == MODEL_GE_TIME) {
        configuration->model = DROPPER_MODEL_GE_TIME;
        request->data.good_us = mean_us(given, OPTION_GOOD_S);
        request->data.bad_us = mean_us(given, OPTION_BAD_S);
    }
    if (model == MODEL_GE || model == MODEL_MARKOV || model == MODEL_GE_TIME) {
        configuration->losses.loss_good = threshold(1 - probability(given, OPTION_K, "1"));
        configuration->losses.loss_bad = threshold(1 - probability(given, OPTION_H, "0"));
    }
    if (model == MODEL_SLOTS)
        configuration->slot_ns = slot_ns(given);
    if (model == MODEL_PATTERN || model == MODEL_SLOTS) {
        configuration->model = model == MODEL_SLOTS ? DROPPER_MODEL_SLOTS : DROPPER_MODEL_PATTERN;
        request->data.pattern = read_pattern(given);
        configuration->pattern_length = request->data.pattern.length;
        configuration->pattern_repeats = given[OPTION_REPEAT] != NULL;
    }
}

/* ---- The rest ---- */

static void read_filter(given_options given, struct dropper_configuration *configuration) {
    static const struct word families[] = {
        {"any", DROPPER_FAMILY_ANY}, {"ipv4", DROPPER_FAMILY_IPV4}, {"ipv6", DROPPER_FAMILY_IPV6}, {0}};
    static const struct word protocols[] = {{"any", 0}, {"udp", IPPROTO_UDP}, {"tcp", IPPROTO_TCP}, {0}};

    if (given[OPTION_FAMILY])
        configuration->family = parse_word("--family", given[OPTION_FAMILY], families, "any, ipv4 or ipv6");
    if (given[OPTION_PROTOCOL])
        configuration->protocol =
            parse_word("--protocol", given[OPTION_PROTOCOL], protocols, "any, udp or tcp");
    if (given[OPTION_PORT])
        configuration->port = parse_integer("--port", given[OPTION_PORT], 1, UINT16_MAX);
}

static void read_place(given_options given, struct request *request) {
    if (!given[OPTION_DEV])
        refuse("--dev is missing: the interface");
    if (!given[OPTION_INGRESS] == !given[OPTION_EGRESS])
        refuse("one of --ingress and --egress is needed");
    request->interface = given[OPTION_DEV];
    request->direction = given[OPTION_INGRESS] ? BPF_TC_INGRESS : BPF_TC_EGRESS;
    request->netns = given[OPTION_NETNS];
}

static void read_attach(given_options given, struct request *request) {
    struct dropper_configuration *configuration = &request->configuration;

    read_model(given, request);
    read_filter(given, configuration);
    configuration->losses.seed =
        given[OPTION_SEED] ? parse_integer("--seed", given[OPTION_SEED], 0, UINT64_MAX) : 0;
    if (configuration->model == DROPPER_MODEL_SLOTS)
        configuration->first_slot = losses_first_slot(
            configuration->losses.seed, configuration->pattern_length, configuration->pattern_repeats);
    request->data.recorded = given[OPTION_RECORD]
                                 ? parse_integer("--record", given[OPTION_RECORD], 1, DROPPER_PACKETS_MAX)
                                 : DROPPER_RECORDED;
}

static void read_options(int argc, char **argv, given_options given) {
    int outcome, option;

    opterr =
        0; /* our own messages: "+:" stops at the first argument that is no option, and tells what is wrong */
    while ((outcome = getopt_long(argc, argv, "+:", options, &option)) == 0) {
        if (given[option])
            refuse("--%s: given twice", options[option].name);
        given[option] = optarg ? optarg : "";
    }
    if (outcome == ':')
        refuse("%s: its value is missing", argv[optind - 1]);
    if (outcome == '?')
        refuse("%s: no such option, or a value for one that takes none; see dropper help", argv[optind - 1]);
    if (optind < argc)
        refuse("%s: an option was expected; see dropper help", argv[optind]);
}

struct request read_command_line(int argc, char **argv) {
    static const struct word actions[] = {
        {"attach", ACTION_ATTACH},
        {"show", ACTION_SHOW},
        {"log", ACTION_LOG},
        {"detach", ACTION_DETACH},
        {"--help", ACTION_USAGE},
        {"help", ACTION_USAGE},
        {0},
    };
    const char *right = "attach, show, log, detach or help";
    struct request request = {0};
    given_options given = {0};

    if (argc < 2)
        refuse("what to do is missing: %s", right);
    request.action = parse_word("", argv[1], actions, right);
    if (request.action == ACTION_USAGE)
        return request;
    read_options(argc - 1, argv + 1, given);
    read_place(given, &request);
    request.json = given[OPTION_JSON] != NULL;
    for (enum option_name option = OPTION_MODEL; option < OPTIONS; option++)
        if (given[option] && request.action != ACTION_ATTACH)
            refuse("--%s: only attach takes it", options[option].name);
    if (request.action == ACTION_ATTACH)
        read_attach(given, &request);
    return request;
}
