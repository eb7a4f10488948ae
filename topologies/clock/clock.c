// The clock of a link that cannot tell how late it was: when each frame entered it and left it, by the
// kernel's clock at both ends, held against the law of the link.
//
//   clock NEAR-NETNS NEAR-INTERFACE FAR-NETNS FAR-INTERFACE UP-BPS UP-DELAY-NS DOWN-BPS DOWN-DELAY-NS
//   LATE-BOUND-US
//
// Says {"event": "ready"} when it sees every frame. On a line `start NS` on its standard input it notes when
// the first frame of each direction enters from that time of CLOCK_MONOTONIC on, and answers; on `finish` it
// reports and ends. It ends with the thread that started it.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/types.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "clock.h"
#include "law.h"
#include "passage.h"

enum { ARGUMENTS = 9, PRIORITY = 1, HANDLE = 0xc10c, READ_EVERY_MS = 20 };

extern const char clock_object[];
extern const char clock_object_end[];

static struct lane {
    struct passage passage;
    struct law law;
    uint64_t unseen;      // frames that left and were not seen to enter
    uint64_t first_in_ns; // after the start; 0: none
} lanes[CLOCK_DIRECTIONS];

static uint64_t started_ns = UINT64_MAX;

static _Noreturn void fail(int error, const char *what) {
    fprintf(stderr, "clock: %s: %s\n", what, strerror(abs(error)));
    exit(1);
}

static int quiet(enum libbpf_print_level level, const char *format, va_list arguments) {
    (void)level, (void)format, (void)arguments;
    return 0;
}

static uint64_t number(const char *text) {
    char *end;
    errno = 0;
    uint64_t value = strtoull(text, &end, 10);
    if (errno || *end || end == text) {
        fprintf(stderr, "clock: %s: must be a whole number\n", text);
        exit(2);
    }
    return value;
}

static void attach(struct bpf_object *object, const char *program, const char *interface,
                   enum bpf_tc_attach_point point) {
    LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = (int)if_nametoindex(interface), .attach_point = point);
    LIBBPF_OPTS(bpf_tc_opts, filter, .priority = PRIORITY, .handle = HANDLE);
    int error = bpf_tc_hook_create(&hook);
    if (error && error != -EEXIST)
        fail(error, interface);
    filter.prog_fd = bpf_program__fd(bpf_object__find_program_by_name(object, program));
    error = bpf_tc_attach(&hook, &filter);
    if (error)
        fail(error, program);
}

static void attach_end(struct bpf_object *object, const char *netns, const char *interface, const char *enter,
                       const char *leave) {
    int fd = open(netns, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || setns(fd, CLONE_NEWNET) != 0)
        fail(errno, netns);
    close(fd);
    attach(object, enter, interface, BPF_TC_EGRESS);
    attach(object, leave, interface, BPF_TC_INGRESS);
}

static int note(void *context, void *data, size_t size) {
    const struct clock_sighting *sighting = data;
    struct lane *lane = &lanes[sighting->direction];
    (void)context, (void)size;
    if (sighting->event == CLOCK_ENTERED) {
        passage_enter(&lane->passage, sighting->key, sighting->at_ns);
        if (!lane->first_in_ns && sighting->at_ns >= started_ns)
            lane->first_in_ns = sighting->at_ns;
        return 0;
    }
    uint64_t entered_ns = passage_leave(&lane->passage, sighting->key);
    if (entered_ns)
        law_frame(&lane->law, entered_ns, sighting->at_ns, sighting->bytes);
    else
        lane->unseen++;
    return 0;
}

static void print_direction(const char *name, const struct lane *lane) {
    const struct law *law = &lane->law;
    printf("\"%s\": {\"frames\": %" PRIu64 ", \"unseen\": %" PRIu64 ", \"first_in_ns\": ", name, law->frames,
           lane->unseen);
    if (lane->first_in_ns)
        printf("%" PRIu64, lane->first_in_ns);
    else
        printf("null");
    printf(", \"early_us\": %.3f, \"late\": %" PRIu64 ", \"late_sum_us\": %.3f, \"lateness_us\": {",
           (double)law->early_max_ns / 1e3, law->late, (double)law->overdue.total_ns / 1e3);
    const struct {
        const char *name;
        double q;
    } quantiles[] = {{"p50", 0.5}, {"p99", 0.99}, {"p999", 0.999}};
    for (size_t i = 0; i < sizeof(quantiles) / sizeof(quantiles[0]); i++)
        printf("\"%s\": %.3f, ", quantiles[i].name,
               (double)lateness_quantile(&law->lateness, quantiles[i].q) / 1e3);
    printf("\"max\": %.3f}}", (double)law->lateness.max_ns / 1e3);
}

static void report(uint64_t untold) {
    printf("{\"event\": \"report\", \"untold\": %" PRIu64 ", ", untold);
    print_direction("up", &lanes[CLOCK_UP]);
    printf(", ");
    print_direction("down", &lanes[CLOCK_DOWN]);
    printf("}\n");
}

// A line of standard input, whose sender awaits the answer before the next. Until it comes, frames are noted.
static bool next_order(char *order, size_t size, struct ring_buffer *sightings) {
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    while (poll(&input, 1, READ_EVERY_MS) == 0)
        ring_buffer__consume(sightings);
    ssize_t length = read(STDIN_FILENO, order, size - 1);
    order[length > 0 ? length : 0] = 0;
    order[strcspn(order, "\n")] = 0;
    return length > 0;
}

int main(int argc, char **argv) {
    if (argc != ARGUMENTS + 1) {
        fprintf(stderr, "clock: %d arguments: must be %d\n", argc - 1, ARGUMENTS);
        return 2;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    libbpf_set_print(quiet);
    for (int direction = 0; direction < CLOCK_DIRECTIONS; direction++) {
        lanes[direction].law.bytes_per_s = number(argv[5 + 2 * direction]) / 8;
        lanes[direction].law.delay_ns = number(argv[6 + 2 * direction]);
        lanes[direction].law.late_bound_ns = 1000 * number(argv[9]);
    }
    struct bpf_object *object =
        bpf_object__open_mem(clock_object, (size_t)(clock_object_end - clock_object), NULL);
    int error = object ? bpf_object__load(object) : -errno;
    if (error)
        fail(error, "cannot load its BPF programs");
    attach_end(object, argv[1], argv[2], "enter_up", "leave_down");
    attach_end(object, argv[3], argv[4], "enter_down", "leave_up");
    struct ring_buffer *sightings =
        ring_buffer__new(bpf_object__find_map_fd_by_name(object, "sightings"), note, NULL, NULL);
    if (!sightings)
        fail(errno, "cannot read its ring of sightings");
    printf("{\"event\": \"ready\"}\n");
    fflush(stdout);

    char order[32] = "";
    while (next_order(order, sizeof(order), sightings) && strncmp(order, "start ", 6) == 0) {
        started_ns = number(order + 6);
        printf("{\"event\": \"started\"}\n");
        fflush(stdout);
    }
    if (strcmp(order, "finish") != 0)
        return 0;
    ring_buffer__consume(sightings);
    uint64_t untold = 0;
    uint32_t only = 0;
    bpf_map_lookup_elem(bpf_object__find_map_fd_by_name(object, "untold"), &only, &untold);
    report(untold);
    return 0;
}
