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
#include "written.h"

static const char USAGE[] =
    "Usage: wire --near-netns PATH --near-interface NAME --far-netns PATH --far-interface NAME\n"
    "            --up TEXT [--up-steps-fd N] --down TEXT [--down-steps-fd N]\n"
    "            [--mtu BYTES (1500)] [--late-bound-us N (1000)] [--keep-interfaces]\n"
    "            [--origin-fd N] [--client ADDRESS]...\n"
    "\n"
    "Emulates one link between two TAP interfaces that it makes in the two network namespaces; up is from\n"
    "the near end to the far one. Prints a line of JSON when they are up. A line `start NS` on standard "
    "input\n"
    "says from which time of CLOCK_MONOTONIC on the first frame is looked for, and is answered by a line.\n"
    "A line `finish` stops forwarding and prints the report, a line of JSON; the end of standard input, "
    "SIGINT\n"
    "or SIGTERM do so too, and end the program. The interfaces end with it or, with --keep-interfaces, with\n"
    "their namespaces: then the kernel need not hurry, and the end takes no time.\n"
    "\n"
    "Texts of directions have lines:\n";

static const char FURTHER_USAGE[] =
    "The file --up-steps-fd takes the place of a line `steps`: the numbers of a machine, one step after "
    "another.\n"
    "Outages and schedules are counted from when the client's first frame comes after the start: an IP "
    "frame\n"
    "upwards from one of the addresses --client, any frame upwards without. Links that are given the same\n"
    "memory, 8 bytes, as --origin-fd count from the first of all of them.\n";

enum { ETHERNET_HEADER = 14 };

enum option_name {
    NEAR_NETNS = 256,
    NEAR_INTERFACE,
    FAR_NETNS,
    FAR_INTERFACE,
    UP,
    UP_STEPS_FD,
    DOWN,
    DOWN_STEPS_FD,
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
    {"up", required_argument, NULL, UP},
    {"up-steps-fd", required_argument, NULL, UP_STEPS_FD},
    {"down", required_argument, NULL, DOWN},
    {"down-steps-fd", required_argument, NULL, DOWN_STEPS_FD},
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
        die(EXIT_BAD_INPUT, "--%s %s: must be a whole number from %llu to %llu", option, text,
            (unsigned long long)minimum, (unsigned long long)maximum);
    return value;
}

static const char *interface_name(const char *option, const char *text) {
    size_t length = strlen(text);
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)text[i]) && !strchr("_-.", text[i]))
            length = 0;
    if (length == 0 || length >= IFNAMSIZ)
        die(EXIT_BAD_INPUT, "--%s %s: must be 1 to 15 letters, digits, or any of _-.", option, text);
    return text;
}

// One direction, as it is given.
struct given_direction {
    char *text;
    const struct schedule_step *steps;
    uint64_t step_count;
};

static void map_steps(struct given_direction *given, const char *option, const char *text) {
    int fd = (int)whole_number(option, text, 0, INT_MAX);
    struct stat file;
    if (fstat(fd, &file) < 0 || file.st_size <= 0 || file.st_size % sizeof *given->steps)
        die(EXIT_BAD_INPUT, "--%s %s: must be an open file of steps of %zu bytes", option, text,
            sizeof *given->steps);
    given->step_count = (uint64_t)file.st_size / sizeof *given->steps;
    given->steps = mmap(NULL, (size_t)file.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (given->steps == MAP_FAILED)
        die(EXIT_BAD_INPUT, "--%s is %s; the file cannot be read", option, text);
}

// The text is changed: the report has it from the command line, so it is a copy.
static struct written read_direction(const char *name, const struct given_direction *given,
                                     uint32_t max_frame_size) {
    struct written written;
    if (!given->text)
        die(EXIT_BAD_INPUT, "--%s is missing; see wire --help", name);
    char *copy = strdup(given->text);
    if (!copy)
        die(EXIT_FAILED, "out of memory for the text of a direction");
    written_begin(&written);
    written_use_steps(&written, given->steps, given->step_count);
    if (!written_read(&written, copy))
        die(EXIT_BAD_INPUT, "--%s: %s", name, written.refusal);
    free(copy);
    written.settings.max_frame_size = max_frame_size;
    return written;
}

static void add_client(struct options *options, const char *option, const char *text) {
    if (options->client_count == MOST_CLIENTS)
        die(EXIT_BAD_INPUT, "--%s is given more than %d times", option, MOST_CLIENTS);
    struct client_address *client = &options->clients[options->client_count++];
    client->version = strchr(text, ':') ? 6 : 4;
    if (inet_pton(client->version == 6 ? AF_INET6 : AF_INET, text, client->bytes) != 1)
        die(EXIT_BAD_INPUT, "--%s %s: must be an address of IPv4 or IPv6", option, text);
}

static void print_and_exit(const char *text, const char *of_links, const char *rest) {
    printf("%s%s%s", text, of_links, rest);
    exit(0);
}

static void parse_option(struct options *options, struct given_direction given[2], int name,
                         const char *option, char *value) {
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
    case UP:
    case DOWN:
        given[name == DOWN].text = value;
        break;
    case UP_STEPS_FD:
    case DOWN_STEPS_FD:
        map_steps(&given[name == DOWN_STEPS_FD], option, value);
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
        print_and_exit(USAGE, WRITTEN_USAGE, FURTHER_USAGE);
        break;
    case VERSION:
        print_and_exit("wire ", WIRE_VERSION, "\n");
        break;
    }
}

static void require(const char *option, bool given) {
    if (!given)
        die(EXIT_BAD_INPUT, "--%s is missing; see wire --help", option);
}

struct options options_parse(int argc, char **argv) {
    struct options options = {.mtu = 1500, .late_bound_us = 1000, .origin_fd = -1};
    struct given_direction given[2] = {{0}};
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
        parse_option(&options, given, name, LONG_OPTIONS[index].name, optarg);
    }
    if (optind < argc)
        die(EXIT_BAD_INPUT, "%s is not an option; see wire --help", argv[optind]);
    require("near-netns", options.near.netns);
    require("near-interface", options.near.interface);
    require("far-netns", options.far.netns);
    require("far-interface", options.far.interface);
    options.up = read_direction("up", &given[0], options.mtu + ETHERNET_HEADER);
    options.down = read_direction("down", &given[1], options.mtu + ETHERNET_HEADER);
    return options;
}
