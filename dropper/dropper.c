/* The command: attaches droppers, shows their counters and drops, and detaches them. */
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>

#include "attachment.h"
#include "command_line.h"
#include "failure.h"

static void print_quoted(const char *text) {
    putchar('"');
    for (; *text; text++)
        if (*text == '"' || *text == '\\' || (unsigned char)*text < ' ')
            printf("\\u%04x", (unsigned char)*text);
        else
            putchar(*text);
    putchar('"');
}

static void begin_document(const struct place *place) {
    printf("{\"interface\": ");
    print_quoted(place->interface);
    printf(", \"direction\": \"%s\"", direction_name(place));
}

static struct attached require_attached(const struct place *place) {
    struct attached attached = find(place);

    if (!attached.program_id)
        fail(0, "%s %s: no dropper is attached", place->interface, direction_name(place));
    return attached;
}

static void run_attach(const struct request *request, const struct place *place) {
    uint32_t id = attach(place, request->configuration, &request->losses, request->recorded);

    if (!request->json) {
        printf("%s %s: attached\n", place->interface, direction_name(place));
        return;
    }
    begin_document(place);
    printf(", \"program_id\": %u}\n", id);
}

static void run_detach(const struct request *request, const struct place *place) {
    bool detached = detach(place);

    if (!request->json) {
        printf("%s %s: %s\n", place->interface, direction_name(place),
               detached ? "detached" : "nothing to detach");
        return;
    }
    begin_document(place);
    printf(", \"detached\": %s}\n", detached ? "true" : "false");
}

/* ---- show ---- */

static const char *model_name(const struct dropper_configuration *configuration) {
    const char *name = losses_model_name(configuration->model);

    if (!name)
        fail(0, "the attached dropper has no model (%u)", configuration->model);
    return name;
}

static const char *family_name(const struct dropper_configuration *configuration) {
    return configuration->family == DROPPER_FAMILY_IPV4   ? "ipv4"
           : configuration->family == DROPPER_FAMILY_IPV6 ? "ipv6"
                                                          : "any";
}

static const char *protocol_name(const struct dropper_configuration *configuration) {
    return configuration->protocol == IPPROTO_UDP   ? "udp"
           : configuration->protocol == IPPROTO_TCP ? "tcp"
                                                    : "any";
}

struct counter {
    const char *name;
    uint64_t value;
};

#define COUNTERS 7

static void read_all_counters(const struct attached *attached, struct counter counters[COUNTERS]) {
    struct dropper_counters read = read_counters(attached);
    const struct counter all[COUNTERS] = {
        {"seen", read_packets(attached)},
        {"dropped", read.dropped},
        {"shorter", read.shorter},
        {"other", read.other},
        {"gso", read.gso},
        {"truncated", read.truncated},
        {"fragments", read.fragments},
    };

    for (int i = 0; i < COUNTERS; i++)
        counters[i] = all[i];
}

static void print_counters(const struct counter counters[COUNTERS]) {
    printf(", \"counters\": {");
    for (int i = 0; i < COUNTERS; i++)
        printf("%s\"%s\": %" PRIu64, i ? ", " : "", counters[i].name, counters[i].value);
    putchar('}');
}

static void show_json(const struct place *place, const struct attached *attached,
                      const struct dropper_configuration *configuration,
                      const struct counter counters[COUNTERS]) {
    begin_document(place);
    printf(", \"program_id\": %u, \"seed\": %" PRIu64 ", \"record\": %" PRIu64, attached->program_id,
           (uint64_t)configuration->losses.seed, attached->recorded);
    printf(", \"model\": {\"model\": \"%s\", \"thresholds\": {\"good_to_bad\": %" PRIu64
           ", \"bad_to_good\": %" PRIu64 ", \"loss_good\": %" PRIu64 ", \"loss_bad\": %" PRIu64
           "}, \"length\": %" PRIu64 ", \"repeat\": %s, \"slot_ns\": %" PRIu64 ", \"first_slot\": %" PRIu64
           ", \"cycle_ns\": %" PRIu64 "}",
           model_name(configuration), (uint64_t)configuration->losses.good_to_bad,
           (uint64_t)configuration->losses.bad_to_good, (uint64_t)configuration->losses.loss_good,
           (uint64_t)configuration->losses.loss_bad,
           (uint64_t)(configuration->losses.length ? configuration->losses.length
                                                   : configuration->pattern_length),
           configuration->pattern_repeats ? "true" : "false", (uint64_t)configuration->slot_ns,
           (uint64_t)configuration->first_slot, (uint64_t)configuration->cycle_ns);
    printf(", \"filter\": {\"family\": \"%s\", \"protocol\": \"%s\", \"port\": ", family_name(configuration),
           protocol_name(configuration));
    printf(configuration->port ? "%u}" : "null}", configuration->port);
    print_counters(counters);
    printf("}\n");
}

static double probability_of(uint64_t threshold) {
    return threshold / 4294967296.0;
}

static void print_model(const struct dropper_configuration *configuration) {
    double loss_good = probability_of(configuration->losses.loss_good),
           loss_bad = probability_of(configuration->losses.loss_bad);

    printf("  model  %s", model_name(configuration));
    if (configuration->model == LOSSES_MODEL_UNIFORM)
        printf(", p %.10g", loss_good);
    if (configuration->losses.burst_max)
        printf(", no more than %" PRIu64 " in a row", (uint64_t)configuration->losses.burst_max);
    if (configuration->losses.only_longer_than)
        printf(", of packets longer than %" PRIu64 " bytes",
               (uint64_t)configuration->losses.only_longer_than);
    if (configuration->model == LOSSES_MODEL_BEGINNING)
        printf(" of %" PRIu64 " packets, p %.10g", (uint64_t)configuration->losses.length, loss_good);
    if (configuration->model == LOSSES_MODEL_GILBERT_ELLIOTT)
        printf(", p %.10g, r %.10g, k %.10g, h %.10g", probability_of(configuration->losses.good_to_bad),
               probability_of(configuration->losses.bad_to_good), 1 - loss_good, 1 - loss_bad);
    if (configuration->model == LOSSES_MODEL_GE_TIME)
        printf(", k %.10g, h %.10g, %u stays in %.6g s", 1 - loss_good, 1 - loss_bad, LOSSES_STAYS,
               configuration->cycle_ns / 1e9);
    if (configuration->model == LOSSES_MODEL_SLOTS)
        printf(" of %g ms, %" PRIu64 " of them from number %" PRIu64 "%s", configuration->slot_ns / 1e6,
               (uint64_t)configuration->pattern_length, (uint64_t)configuration->first_slot,
               configuration->pattern_repeats ? ", repeated" : "");
    if (configuration->model == LOSSES_MODEL_PATTERN)
        printf(" of %" PRIu64 " packets%s", (uint64_t)configuration->pattern_length,
               configuration->pattern_repeats ? ", repeated" : "");
    printf(", seed %" PRIu64 "\n", (uint64_t)configuration->losses.seed);
}

static void show_text(const struct place *place, const struct dropper_configuration *configuration,
                      const struct counter counters[COUNTERS]) {
    printf("%s %s\n", place->interface, direction_name(place));
    print_model(configuration);
    printf("  filter family %s, protocol %s, port ", family_name(configuration),
           protocol_name(configuration));
    printf(configuration->port ? "%u\n" : "any\n", configuration->port);
    for (int i = 0; i < COUNTERS; i++)
        printf("  %-9s %12" PRIu64 "\n", counters[i].name, counters[i].value);
}

static void run_show(const struct request *request, const struct place *place) {
    struct attached attached = require_attached(place);
    struct dropper_configuration configuration = read_configuration(&attached);
    struct counter counters[COUNTERS];

    read_all_counters(&attached, counters);
    if (request->json)
        show_json(place, &attached, &configuration, counters);
    else
        show_text(place, &configuration, counters);
}

/* ---- log ---- */

static void run_log(const struct request *request, const struct place *place) {
    struct attached attached = require_attached(place);
    uint64_t packets = read_packets(&attached);
    struct verdicts verdicts = read_verdicts(&attached, packets);
    const uint64_t *arrivals = read_arrivals(&attached);
    struct counter counters[COUNTERS];

    if (!request->json) {
        print_ranges(stdout, &verdicts);
        putchar('\n');
        return;
    }
    begin_document(place);
    printf(", \"packets\": %" PRIu64 ", \"recorded\": %" PRIu64 ", \"dropped\": [", packets, verdicts.length);
    print_indices(stdout, &verdicts);
    printf("]");
    if (arrivals) {
        printf(", \"arrivals_ns\": [");
        for (uint64_t n = 0; n < verdicts.length; n++)
            printf(n ? ", %" PRIu64 : "%" PRIu64, arrivals[n]);
        printf("]");
    }
    read_all_counters(&attached, counters);
    print_counters(counters);
    printf("}\n");
}

static void run(const struct request *request) {
    struct place place;

    if (request->action == ACTION_USAGE) {
        print_usage();
        return;
    }
    place = enter(request->netns, request->interface, request->direction);
    if (request->action == ACTION_ATTACH)
        run_attach(request, &place);
    else if (request->action == ACTION_DETACH)
        run_detach(request, &place);
    else if (request->action == ACTION_SHOW)
        run_show(request, &place);
    else
        run_log(request, &place);
}

int main(int argc, char **argv) {
    struct request request = read_command_line(argc, argv);

    keep_libbpf_warning();
    run(&request);
    if (fflush(stdout) != 0)
        fail(errno, "cannot write the answer");
    return 0;
}
