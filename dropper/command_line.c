#include "command_line.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "failure.h"

static const char usage[] =
    "dropper: drops packets by a seeded loss model, at one side of one interface\n"
    "\n"
    "  dropper attach PLACE MODEL [--seed N] [FILTER] [--record PACKETS] [--json]\n"
    "  dropper show   PLACE [--json]     the model and the counters\n"
    "  dropper log    PLACE [--json]     the packets dropped so far, as --drop takes them\n"
    "  dropper detach PLACE [--json]\n"
    "\n"
    "PLACE    --dev INTERFACE --ingress|--egress [--netns PATH|NAME|PID]\n";

static const char further_usage[] =
    "         --losses FILE      all of it as text, a line for each: model ge, p 0.01, r 0.25, seed 7\n"
    "FILTER   [--family any|ipv4|ipv6] [--protocol any|udp|tcp] [--port N]\n";

void print_usage(void) {
    printf("%s%s%s", usage, losses_usage, further_usage);
}

enum option_name {
    OPTION_DEV,
    OPTION_INGRESS,
    OPTION_EGRESS,
    OPTION_NETNS,
    OPTION_JSON,
    OPTION_LOSSES, /* from here on: attach only */
    OPTION_PATTERN_FILE,
    OPTION_FAMILY,
    OPTION_PROTOCOL,
    OPTION_PORT,
    OPTION_RECORD,
    OPTION_FIRST_PARAMETER, /* of the losses: in the order of losses_names */
    OPTIONS = OPTION_FIRST_PARAMETER + PARAMETERS,
};

/* Those of the losses are filled in. */
static struct option options[OPTIONS + 1] = {
    [OPTION_DEV] = {"dev", required_argument, NULL, 0},
    [OPTION_INGRESS] = {"ingress", no_argument, NULL, 0},
    [OPTION_EGRESS] = {"egress", no_argument, NULL, 0},
    [OPTION_NETNS] = {"netns", required_argument, NULL, 0},
    [OPTION_JSON] = {"json", no_argument, NULL, 0},
    [OPTION_LOSSES] = {"losses", required_argument, NULL, 0},
    [OPTION_PATTERN_FILE] = {"pattern-file", required_argument, NULL, 0},
    [OPTION_FAMILY] = {"family", required_argument, NULL, 0},
    [OPTION_PROTOCOL] = {"protocol", required_argument, NULL, 0},
    [OPTION_PORT] = {"port", required_argument, NULL, 0},
    [OPTION_RECORD] = {"record", required_argument, NULL, 0},
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

/* ---- Losses ---- */

/* The option of each parameter: --good-s of good_s. */
static void name_parameters(void) {
    static char names[PARAMETERS][20];

    for (int i = 0; i < PARAMETERS; i++) {
        snprintf(names[i], sizeof(names[i]), "%s", losses_names[i]);
        for (char *letter = names[i]; (letter = strchr(letter, '_'));)
            *letter = '-';
        options[OPTION_FIRST_PARAMETER + i] =
            (struct option){names[i], i == PARAMETER_REPEAT ? no_argument : required_argument, NULL, 0};
    }
}

static _Noreturn void refuse_losses(const struct written_losses *written) {
    for (int i = 0; i < PARAMETERS; i++)
        if (strcmp(losses_names[i], written->name) == 0)
            refuse("--%s%s", options[OPTION_FIRST_PARAMETER + i].name, written->why);
    refuse("--losses: %s%s", written->name, written->why);
}

static char *read_file(const char *option, const char *path, const char *right) {
    FILE *file = fopen(path, "re");
    char *text = NULL;
    size_t size = 0;
    ssize_t length;

    if (!file)
        refuse("%s: cannot read %s: %s", option, path, strerror(errno));
    length = getdelim(&text, &size, '\0', file);
    if (length < 0 && ferror(file))
        refuse("%s: cannot read %s: %s", option, path, strerror(errno));
    if (length > 0 && text[length - 1] == '\0')
        refuse("%s: %s is not a text file: it should be %s", option, path, right);
    fclose(file);
    if (!text)
        fail(errno, "no memory for what %s has", path);
    if (length <= 0)
        *text = '\0';
    return text;
}

static void take_parameter(struct written_losses *written, enum losses_parameter parameter,
                           const char *value) {
    if (written_losses_take(written, losses_names[parameter], value) == LOSSES_REFUSED)
        refuse_losses(written);
}

static void read_losses(given_options given, struct written_losses *written) {
    const char *const *parameters = &given[OPTION_FIRST_PARAMETER];

    written_losses_begin(written);
    if (given[OPTION_LOSSES]) {
        for (int i = 0; i < PARAMETERS; i++)
            if (parameters[i])
                refuse("--%s: --losses has it", options[OPTION_FIRST_PARAMETER + i].name);
        if (!written_losses_read(written, read_file("--losses", given[OPTION_LOSSES], "lines as in p 0.01")))
            refuse_losses(written);
        if (!(written->given & 1u << PARAMETER_MODEL))
            refuse("--losses: %s is empty: it should be lines as in model ge", given[OPTION_LOSSES]);
        return;
    }
    if (given[OPTION_PATTERN_FILE] && parameters[PARAMETER_DROP])
        refuse("--pattern-file: --drop is given, too");
    for (int i = 0; i < PARAMETERS; i++)
        if (parameters[i])
            take_parameter(written, i, i == PARAMETER_REPEAT ? "true" : parameters[i]);
    if (given[OPTION_PATTERN_FILE])
        take_parameter(written, PARAMETER_DROP,
                       read_file("--pattern-file", given[OPTION_PATTERN_FILE], "a list as in 3,7-9"));
    written->given |= !written->given << PARAMETER_SEED; /* a command names its model */
    if (!written_losses_end(written))
        refuse_losses(written);
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

    read_losses(given, &request->losses);
    read_filter(given, configuration);
    configuration->model = request->losses.model;
    configuration->losses = request->losses.losses;
    configuration->pattern_length = request->losses.pattern.length;
    configuration->pattern_repeats = request->losses.repeats;
    configuration->slot_ns = request->losses.slot_ns;
    configuration->first_slot = request->losses.first_slot;
    request->recorded = given[OPTION_RECORD]
                            ? parse_integer("--record", given[OPTION_RECORD], 1, LOSSES_PACKETS_MAX)
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
    name_parameters();
    read_options(argc - 1, argv + 1, given);
    read_place(given, &request);
    request.json = given[OPTION_JSON] != NULL;
    for (int option = OPTION_LOSSES; option < OPTIONS; option++)
        if (given[option] && request.action != ACTION_ATTACH)
            refuse("--%s: only attach takes it", options[option].name);
    if (request.action == ACTION_ATTACH)
        read_attach(given, &request);
    return request;
}
