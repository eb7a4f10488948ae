#include "options.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "system.h"
#include "version.h"

static const char USAGE[] =
    "Usage: wire --near-netns PATH --near-interface NAME --far-netns PATH --far-interface NAME\n"
    "            --up-rate-bps N --up-delay-ns N (--up-queue-bytes N | --up-queue-packets N) [--up-codel]\n"
    "            --down-rate-bps N --down-delay-ns N (--down-queue-bytes N | --down-queue-packets N)\n"
    "            [--down-codel]\n"
    "            [--up-schedule-fd N [--up-schedule-repeat loop|hold|end] [--up-schedule-offset-ns N]\n"
    "             [--up-queue-ns N]] and the same with --down\n"
    "            [--up-jitter-law uniform|normal|pareto --up-jitter-mean-ns N [--up-jitter-seed N]]\n"
    "            [--up-reorder] and the same with --down\n"
    "            [--up-outage-from-ns N --up-outage-to-ns N] [--down-outage-from-ns N --down-outage-to-ns "
    "N]\n"
    "            [--mtu BYTES (1500)] [--late-bound-us N (1000)] [--keep-interfaces]\n"
    "            [--origin-fd N] [--client ADDRESS]...\n"
    "\n"
    "Emulates one link between two TAP interfaces that it makes in the two network namespaces; up is from\n"
    "the near end to the far one. Prints a line of JSON when they are up. A line `start NS` on standard "
    "input\n"
    "says from which time of CLOCK_MONOTONIC on the first frame is looked for, and is answered by a line.\n"
    "Outages are counted from when the client's first frame comes after that: an IPv4 frame upwards from one "
    "of\n"
    "the addresses --client, any frame upwards without. Links that are given the same memory, 8 bytes, as\n"
    "--origin-fd count from the first of all of them. While a direction is out, it drops every frame that "
    "comes.\n"
    "A schedule is a file of steps, four numbers of 8 bytes each: the end in ns, the rate, the delay in ns, "
    "and\n"
    "bytes that may leave at the end besides. It counts from the same time, and --up-queue-ns is then a "
    "queue's\n"
    "limit, in the time that the present rate takes for it.\n"
    "Jitter delays each frame besides, by a law, a mean and a seed. Frames stay in their order, or, with\n"
    "--up-reorder, one whose delay is shorter overtakes.\n"
    "A line `finish` on standard input\n"
    "stops forwarding and prints the report, a line of JSON; the end of standard input, SIGINT or SIGTERM "
    "do\n"
    "so too, and end the program. The interfaces end with it or, with --keep-interfaces, with their\n"
    "namespaces: then the kernel need not hurry, and the end takes no time.\n";

enum { ETHERNET_HEADER = 14 };

#define NO_DELAY_GIVEN UINT64_MAX

enum option_name {
    NEAR_NETNS = 256,
    NEAR_INTERFACE,
    FAR_NETNS,
    FAR_INTERFACE,
    UP_RATE_BPS,
    UP_DELAY_NS,
    UP_QUEUE_BYTES,
    UP_QUEUE_PACKETS,
    UP_CODEL,
    UP_OUTAGE_FROM_NS,
    UP_OUTAGE_TO_NS,
    UP_SCHEDULE_FD,
    UP_SCHEDULE_REPEAT,
    UP_SCHEDULE_OFFSET_NS,
    UP_QUEUE_NS,
    UP_JITTER_LAW,
    UP_JITTER_MEAN_NS,
    UP_JITTER_SEED,
    UP_REORDER,
    DOWN_RATE_BPS,
    DOWN_DELAY_NS,
    DOWN_QUEUE_BYTES,
    DOWN_QUEUE_PACKETS,
    DOWN_CODEL,
    DOWN_OUTAGE_FROM_NS,
    DOWN_OUTAGE_TO_NS,
    DOWN_SCHEDULE_FD,
    DOWN_SCHEDULE_REPEAT,
    DOWN_SCHEDULE_OFFSET_NS,
    DOWN_QUEUE_NS,
    DOWN_JITTER_LAW,
    DOWN_JITTER_MEAN_NS,
    DOWN_JITTER_SEED,
    DOWN_REORDER,
    MTU,
    LATE_BOUND_US,
    KEEP_INTERFACES,
    ORIGIN_FD,
    CLIENT,
    HELP,
    VERSION,
};

static const struct option LONG_OPTIONS[] = {
    {"near-netns", required_argument, NULL, NEAR_NETNS},
    {"near-interface", required_argument, NULL, NEAR_INTERFACE},
    {"far-netns", required_argument, NULL, FAR_NETNS},
    {"far-interface", required_argument, NULL, FAR_INTERFACE},
    {"up-rate-bps", required_argument, NULL, UP_RATE_BPS},
    {"up-delay-ns", required_argument, NULL, UP_DELAY_NS},
    {"up-queue-bytes", required_argument, NULL, UP_QUEUE_BYTES},
    {"up-queue-packets", required_argument, NULL, UP_QUEUE_PACKETS},
    {"up-codel", no_argument, NULL, UP_CODEL},
    {"up-outage-from-ns", required_argument, NULL, UP_OUTAGE_FROM_NS},
    {"up-outage-to-ns", required_argument, NULL, UP_OUTAGE_TO_NS},
    {"up-schedule-fd", required_argument, NULL, UP_SCHEDULE_FD},
    {"up-schedule-repeat", required_argument, NULL, UP_SCHEDULE_REPEAT},
    {"up-schedule-offset-ns", required_argument, NULL, UP_SCHEDULE_OFFSET_NS},
    {"up-queue-ns", required_argument, NULL, UP_QUEUE_NS},
    {"up-jitter-law", required_argument, NULL, UP_JITTER_LAW},
    {"up-jitter-mean-ns", required_argument, NULL, UP_JITTER_MEAN_NS},
    {"up-jitter-seed", required_argument, NULL, UP_JITTER_SEED},
    {"up-reorder", no_argument, NULL, UP_REORDER},
    {"down-rate-bps", required_argument, NULL, DOWN_RATE_BPS},
    {"down-delay-ns", required_argument, NULL, DOWN_DELAY_NS},
    {"down-queue-bytes", required_argument, NULL, DOWN_QUEUE_BYTES},
    {"down-queue-packets", required_argument, NULL, DOWN_QUEUE_PACKETS},
    {"down-codel", no_argument, NULL, DOWN_CODEL},
    {"down-outage-from-ns", required_argument, NULL, DOWN_OUTAGE_FROM_NS},
    {"down-outage-to-ns", required_argument, NULL, DOWN_OUTAGE_TO_NS},
    {"down-schedule-fd", required_argument, NULL, DOWN_SCHEDULE_FD},
    {"down-schedule-repeat", required_argument, NULL, DOWN_SCHEDULE_REPEAT},
    {"down-schedule-offset-ns", required_argument, NULL, DOWN_SCHEDULE_OFFSET_NS},
    {"down-queue-ns", required_argument, NULL, DOWN_QUEUE_NS},
    {"down-jitter-law", required_argument, NULL, DOWN_JITTER_LAW},
    {"down-jitter-mean-ns", required_argument, NULL, DOWN_JITTER_MEAN_NS},
    {"down-jitter-seed", required_argument, NULL, DOWN_JITTER_SEED},
    {"down-reorder", no_argument, NULL, DOWN_REORDER},
    {"mtu", required_argument, NULL, MTU},
    {"late-bound-us", required_argument, NULL, LATE_BOUND_US},
    {"keep-interfaces", no_argument, NULL, KEEP_INTERFACES},
    {"origin-fd", required_argument, NULL, ORIGIN_FD},
    {"client", required_argument, NULL, CLIENT},
    {"help", no_argument, NULL, HELP},
    {"version", no_argument, NULL, VERSION},
    {0},
};

static uint64_t whole_number(const char *option, const char *text, uint64_t minimum, uint64_t maximum) {
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (!isdigit((unsigned char)text[0]) || *end || errno || value < minimum || value > maximum)
        die(EXIT_BAD_INPUT, "--%s is %s; it must be a whole number from %llu to %llu", option, text,
            (unsigned long long)minimum, (unsigned long long)maximum);
    return value;
}

static const char *interface_name(const char *option, const char *text) {
    size_t length = strlen(text);
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)text[i]) && !strchr("_-.", text[i]))
            length = 0;
    if (length == 0 || length >= IFNAMSIZ)
        die(EXIT_BAD_INPUT, "--%s is %s; it must be 1 to 15 letters, digits, or any of _-.", option, text);
    return text;
}

static uint64_t rate_bps(const char *option, const char *text) {
    return whole_number(option, text, 1000, 100000000000);
}

static uint64_t delay_ns(const char *option, const char *text) {
    return whole_number(option, text, 0, 1000000000000);
}

static uint64_t outage_ns(const char *option, const char *text) {
    return whole_number(option, text, 0, 1000000000000000);
}

static uint64_t queue_bytes(const char *option, const char *text) {
    return whole_number(option, text, 1, 1000000000000);
}

static uint64_t queue_packets(const char *option, const char *text) {
    return whole_number(option, text, 1, 1000000000);
}

static uint64_t queue_ns(const char *option, const char *text) {
    return whole_number(option, text, 1, 1000000000000);
}

static uint64_t offset_ns(const char *option, const char *text) {
    return whole_number(option, text, 0, 1ull << 62);
}

static enum schedule_repeat schedule_repeat(const char *option, const char *text) {
    static const char *const WORDS[] = {
        [SCHEDULE_LOOPS] = "loop", [SCHEDULE_HOLDS] = "hold", [SCHEDULE_ENDS] = "end"};
    for (unsigned i = 0; i < sizeof WORDS / sizeof *WORDS; i++)
        if (strcmp(text, WORDS[i]) == 0)
            return (enum schedule_repeat)i;
    die(EXIT_BAD_INPUT, "--%s is %s; it must be loop, hold or end", option, text);
}

static enum jitter_law jitter_law(const char *option, const char *text) {
    static const char *const WORDS[] = {
        [JITTER_UNIFORM] = "uniform", [JITTER_NORMAL] = "normal", [JITTER_PARETO] = "pareto"};
    for (unsigned i = JITTER_UNIFORM; i <= JITTER_PARETO; i++)
        if (strcmp(text, WORDS[i]) == 0)
            return (enum jitter_law)i;
    die(EXIT_BAD_INPUT, "--%s is %s; it must be uniform, normal or pareto", option, text);
}

static void read_steps(struct schedule *schedule, const char *option, const char *text) {
    int fd = (int)whole_number(option, text, 0, INT_MAX);
    struct stat file;
    if (fstat(fd, &file) < 0 || file.st_size <= 0 || file.st_size % sizeof *schedule->steps)
        die(EXIT_BAD_INPUT, "--%s is %s; it must be an open file of steps of %zu bytes", option, text,
            sizeof *schedule->steps);
    schedule->count = (uint64_t)file.st_size / sizeof *schedule->steps;
    schedule->steps = mmap(NULL, (size_t)file.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (schedule->steps == MAP_FAILED)
        die(EXIT_BAD_INPUT, "--%s is %s; the file cannot be read", option, text);
}

static void add_client(struct options *options, const char *option, const char *text) {
    if (options->client_count == MOST_CLIENTS)
        die(EXIT_BAD_INPUT, "--%s is given more than %d times", option, MOST_CLIENTS);
    if (inet_pton(AF_INET, text, &options->clients[options->client_count++]) != 1)
        die(EXIT_BAD_INPUT, "--%s is %s; it must be an IPv4 address", option, text);
}

static void print_and_exit(const char *text) {
    fputs(text, stdout);
    exit(0);
}

static void parse_option(struct options *options, int name, const char *option, const char *value) {
    switch (name) {
    case NEAR_NETNS:
        options->near.netns = value;
        break;
    case NEAR_INTERFACE:
        options->near.interface = interface_name(option, value);
        break;
    case FAR_NETNS:
        options->far.netns = value;
        break;
    case FAR_INTERFACE:
        options->far.interface = interface_name(option, value);
        break;
    case UP_RATE_BPS:
        options->up.rate_bps = rate_bps(option, value);
        break;
    case UP_DELAY_NS:
        options->up.delay_ns = delay_ns(option, value);
        break;
    case UP_QUEUE_BYTES:
        options->up.queue_bytes = queue_bytes(option, value);
        break;
    case UP_QUEUE_PACKETS:
        options->up.queue_packets = queue_packets(option, value);
        break;
    case UP_CODEL:
        options->up.codel = true;
        break;
    case UP_OUTAGE_FROM_NS:
        options->up.outage_from_ns = outage_ns(option, value);
        break;
    case UP_OUTAGE_TO_NS:
        options->up.outage_to_ns = outage_ns(option, value);
        break;
    case UP_SCHEDULE_FD:
        read_steps(&options->up.schedule, option, value);
        break;
    case UP_SCHEDULE_REPEAT:
        options->up.schedule.repeat = schedule_repeat(option, value);
        break;
    case UP_SCHEDULE_OFFSET_NS:
        options->up.schedule.offset_ns = offset_ns(option, value);
        break;
    case UP_QUEUE_NS:
        options->up.queue_ns = queue_ns(option, value);
        break;
    case UP_JITTER_LAW:
        options->up.jitter.law = jitter_law(option, value);
        break;
    case UP_JITTER_MEAN_NS:
        options->up.jitter.mean_ns = whole_number(option, value, 1, JITTER_MOST_MEAN_NS);
        break;
    case UP_JITTER_SEED:
        options->up.jitter.seed = whole_number(option, value, 0, UINT64_MAX);
        break;
    case UP_REORDER:
        options->up.reorder = true;
        break;
    case DOWN_RATE_BPS:
        options->down.rate_bps = rate_bps(option, value);
        break;
    case DOWN_DELAY_NS:
        options->down.delay_ns = delay_ns(option, value);
        break;
    case DOWN_QUEUE_BYTES:
        options->down.queue_bytes = queue_bytes(option, value);
        break;
    case DOWN_QUEUE_PACKETS:
        options->down.queue_packets = queue_packets(option, value);
        break;
    case DOWN_CODEL:
        options->down.codel = true;
        break;
    case DOWN_OUTAGE_FROM_NS:
        options->down.outage_from_ns = outage_ns(option, value);
        break;
    case DOWN_OUTAGE_TO_NS:
        options->down.outage_to_ns = outage_ns(option, value);
        break;
    case DOWN_SCHEDULE_FD:
        read_steps(&options->down.schedule, option, value);
        break;
    case DOWN_SCHEDULE_REPEAT:
        options->down.schedule.repeat = schedule_repeat(option, value);
        break;
    case DOWN_SCHEDULE_OFFSET_NS:
        options->down.schedule.offset_ns = offset_ns(option, value);
        break;
    case DOWN_QUEUE_NS:
        options->down.queue_ns = queue_ns(option, value);
        break;
    case DOWN_JITTER_LAW:
        options->down.jitter.law = jitter_law(option, value);
        break;
    case DOWN_JITTER_MEAN_NS:
        options->down.jitter.mean_ns = whole_number(option, value, 1, JITTER_MOST_MEAN_NS);
        break;
    case DOWN_JITTER_SEED:
        options->down.jitter.seed = whole_number(option, value, 0, UINT64_MAX);
        break;
    case DOWN_REORDER:
        options->down.reorder = true;
        break;
    case MTU:
        options->mtu = (uint32_t)whole_number(option, value, 68, 65521);
        break;
    case LATE_BOUND_US:
        options->late_bound_us = whole_number(option, value, 0, 1000000000);
        break;
    case KEEP_INTERFACES:
        options->keep_interfaces = true;
        break;
    case ORIGIN_FD:
        options->origin_fd = (int)whole_number(option, value, 0, INT_MAX);
        break;
    case CLIENT:
        add_client(options, option, value);
        break;
    case HELP:
        print_and_exit(USAGE);
        break;
    case VERSION:
        print_and_exit("wire " WIRE_VERSION "\n");
        break;
    }
}

static void require(const char *option, bool given) {
    if (!given)
        die(EXIT_BAD_INPUT, "--%s is missing; see wire --help", option);
}

static void require_direction(const char *direction, const struct direction_settings *settings) {
    if (!settings->rate_bps)
        die(EXIT_BAD_INPUT, "--%s-rate-bps is missing; see wire --help", direction);
    if (settings->delay_ns == NO_DELAY_GIVEN)
        die(EXIT_BAD_INPUT, "--%s-delay-ns is missing; see wire --help", direction);
    if (settings->schedule.count && !schedule_is_right(&settings->schedule))
        die(EXIT_BAD_INPUT,
            "--%s-schedule-fd: its steps must end one after another, and carry something; see wire --help",
            direction);
    if (settings->queue_ns && !settings->schedule.count)
        die(EXIT_BAD_INPUT, "--%s-queue-ns needs --%s-schedule-fd; see wire --help", direction, direction);
    if (!settings->queue_ns && !settings->queue_bytes == !settings->queue_packets)
        die(EXIT_BAD_INPUT,
            "one of --%s-queue-bytes and --%s-queue-packets must be given, not both; see wire --help",
            direction, direction);
    if (settings->queue_ns && (settings->queue_bytes || settings->queue_packets))
        die(EXIT_BAD_INPUT, "--%s-queue-ns takes the place of the other limits; see wire --help", direction);
    if (!jitter_is_right(&settings->jitter))
        die(EXIT_BAD_INPUT, "--%s-jitter-law and --%s-jitter-mean-ns must be given together; see wire --help",
            direction, direction);
    if (settings->outage_from_ns >= settings->outage_to_ns &&
        (settings->outage_from_ns || settings->outage_to_ns))
        die(EXIT_BAD_INPUT, "--%s-outage-from-ns must be less than --%s-outage-to-ns; see wire --help",
            direction, direction);
}

struct options options_parse(int argc, char **argv) {
    struct options options = {.mtu = 1500, .late_bound_us = 1000, .origin_fd = -1};
    options.up.delay_ns = options.down.delay_ns = NO_DELAY_GIVEN;
    opterr = 0;
    for (;;) {
        int index = 0;
        int name = getopt_long(argc, argv, ":", LONG_OPTIONS, &index);
        if (name < 0)
            break;
        if (name == '?')
            die(EXIT_BAD_INPUT, "%s is not an option; see wire --help", argv[optind - 1]);
        if (name == ':')
            die(EXIT_BAD_INPUT, "%s needs a value; see wire --help", argv[optind - 1]);
        parse_option(&options, name, LONG_OPTIONS[index].name, optarg);
    }
    if (optind < argc)
        die(EXIT_BAD_INPUT, "%s is not an option; see wire --help", argv[optind]);
    require("near-netns", options.near.netns);
    require("near-interface", options.near.interface);
    require("far-netns", options.far.netns);
    require("far-interface", options.far.interface);
    require_direction("up", &options.up);
    require_direction("down", &options.down);
    options.up.max_frame_size = options.down.max_frame_size = options.mtu + ETHERNET_HEADER;
    return options;
}
