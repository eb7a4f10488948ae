// wire: emulates one link between two TAP interfaces, one process per link. `wire --help` says how it is
// used.
//
// direction.c is the link itself, way.c lets real frames into it, and this file decides when. It never
// blocks on a write and discards no frame without counting it; when memory is exhausted it says so and ends.
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "frame_pool.h"
#include "options.h"
#include "origin.h"
#include "report.h"
#include "rest.h"
#include "system.h"
#include "tap.h"
#include "waking.h"
#include "way.h"

enum {
    FIFO_PRIORITY = 50, // above endpoints and harness, below the kernel's own threads
    COMMAND_SIZE = 64,
    UNWATCHED_NS = 5000000, // frames that come meanwhile wait in the TAP; far fewer than it holds
};

struct wire {
    int argc;
    char **argv;
    struct options options;
    struct scheduling scheduling;
    struct tap near, far;
    struct way up, down; // up: from the near end to the far one
    struct frame_pool pool;
    struct origin origin;
    struct waking waking;
    struct rest rest;
    int signals;
    uint64_t started_ns, started_cpu_ns;
    char command[COMMAND_SIZE];
    size_t command_length;
};

static void report(struct wire *wire) {
    struct tap_drops near = tap_drops(&wire->near), far = tap_drops(&wire->far);
    wire->up.kernel_dropped = near.outgoing + far.incoming;
    wire->down.kernel_dropped = far.outgoing + near.incoming;
    struct report contents = {
        .options = &wire->options,
        .argc = wire->argc,
        .argv = wire->argv,
        .scheduling = wire->scheduling,
        .cpu_s = (double)(system_cpu_ns() - wire->started_cpu_ns) / 1e9,
        .spun_s = (double)wire->waking.spun_ns / 1e9,
        .elapsed_s = (double)(system_now_ns() - wire->started_ns) / 1e9,
        .up = way_report(&wire->up),
        .down = way_report(&wire->down),
    };
    report_link(&contents);
}

enum request { REQUEST_NONE, REQUEST_FINISH, REQUEST_END };

static void start(struct wire *wire, const char *text) {
    char *end;
    errno = 0;
    uint64_t at_ns = strtoull(text, &end, 10);
    if (end == text || *end || errno)
        die(EXIT_BAD_INPUT, "start %s: must be start and a time in ns", text);
    wire->origin.from_ns = at_ns;
    report_started();
}

static enum request obey(struct wire *wire, const char *command) {
    static const char START[] = "start ";
    if (strcmp(command, "finish") == 0)
        return REQUEST_FINISH;
    if (strncmp(command, START, sizeof START - 1) != 0)
        die(EXIT_BAD_INPUT, "%s is not a command; the only ones are start NS and finish", command);
    start(wire, command + sizeof START - 1);
    return REQUEST_NONE;
}

static enum request read_command(struct wire *wire) {
    size_t room = COMMAND_SIZE - wire->command_length;
    size_t length = system_read(STDIN_FILENO, wire->command + wire->command_length, room, "standard input");
    if (length == 0)
        return REQUEST_END;
    wire->command_length += length;
    char *end = memchr(wire->command, '\n', wire->command_length);
    if (!end && wire->command_length == COMMAND_SIZE)
        die(EXIT_BAD_INPUT, "a command is longer than %d bytes; the only ones are start NS and finish",
            COMMAND_SIZE);
    if (!end)
        return REQUEST_NONE;
    *end = 0;
    wire->command_length = 0; // a harness awaits the answer to a command before the next
    return obey(wire, wire->command);
}

static uint64_t next_exit(const struct wire *wire) {
    uint64_t up = direction_next_exit(&wire->up.direction), down = direction_next_exit(&wire->down.direction);
    return up < down ? up : down;
}

enum { COMMANDS, SIGNALS, NEAR, FAR, EVENTS, NO_FRAMES = NEAR };

static uint64_t shorter_delay(const struct wire *wire) {
    uint64_t up = wire->up.direction.least_delay_ns, down = wire->down.direction.least_delay_ns;
    return up < down ? up : down;
}

static bool frames_came(const struct wire *wire) {
    return arrivals_unseen(&wire->near.arrivals) || arrivals_unseen(&wire->far.arrivals);
}

// Until a frame is due or one comes, which may be due before it.
static void spin(struct wire *wire, uint64_t due_ns) {
    uint64_t begun_ns = system_now_ns(), now_ns = begun_ns;
    while (now_ns < due_ns && !frames_came(wire))
        now_ns = system_now_ns();
    waking_spend(&wire->waking, now_ns - begun_ns);
}

// Until a frame is due or something happens. Frames that come from now on are due the shorter delay later at
// the earliest, so a process that wakes before need not be woken by them: the kernel has noted when they
// came. They disturb no rest either.
static void wait_for_work(struct wire *wire, struct pollfd *events) {
    uint64_t now_ns = system_now_ns(), due_ns = frames_came(wire) ? 0 : next_exit(wire);
    if (due_ns == NEVER) {
        system_wait(events, EVENTS, NULL);
        return;
    }
    if (rest_is_due(&wire->rest, now_ns))
        rest_adapt(&wire->rest, now_ns, system_cpu_ns());
    uint64_t alarm_ns = waking_alarm(&wire->waking, due_ns, now_ns), rested_ns = now_ns + wire->rest.ns;
    if (alarm_ns < rested_ns)
        alarm_ns = rested_ns;
    uint64_t wait_ns = alarm_ns > now_ns ? alarm_ns - now_ns : 0;
    uint64_t delay_ns = shorter_delay(wire);
    uint64_t unwatched_ns = delay_ns < UNWATCHED_NS ? delay_ns : UNWATCHED_NS;
    struct timespec timeout = {(time_t)(wait_ns / 1000000000), (long)(wait_ns % 1000000000)};
    bool is_watching = wait_ns > unwatched_ns && alarm_ns != rested_ns;
    if (system_wait(events, is_watching ? EVENTS : NO_FRAMES, &timeout))
        return;
    if (wait_ns)
        waking_learn(&wire->waking, system_now_ns() - alarm_ns);
    spin(wire, due_ns);
}

static enum request requested(struct wire *wire, const struct pollfd *events) {
    if (events[SIGNALS].revents)
        return REQUEST_END;
    return events[COMMANDS].revents ? read_command(wire) : REQUEST_NONE;
}

static void write_until(struct wire *wire, uint64_t up_horizon_ns, uint64_t down_horizon_ns) {
    uint64_t late_bound_ns = wire->options.late_bound_us * 1000;
    way_write(&wire->up, &wire->pool, late_bound_ns, up_horizon_ns);
    way_write(&wire->down, &wire->pool, late_bound_ns, down_horizon_ns);
}

// Forwards frames until something else is requested; returns that request.
static enum request forward(struct wire *wire, struct pollfd *events) {
    uint64_t looked_ns = system_now_ns();
    for (;;) {
        wait_for_work(wire, events);
        enum request request = requested(wire, events);
        // First the frames that are due soonest. They left the queue before we last looked, so they make no
        // room in the queue for a frame that is yet to be read.
        if (request == REQUEST_NONE)
            write_until(wire, looked_ns + wire->up.direction.least_delay_ns,
                        looked_ns + wire->down.direction.least_delay_ns);
        looked_ns = system_now_ns();
        way_read(&wire->up, &wire->pool, &wire->origin, true);
        way_read(&wire->down, &wire->pool, &wire->origin, false);
        if (request != REQUEST_NONE)
            return request;
        write_until(wire, NEVER, NEVER);
    }
}

// The interfaces stay, and their counters with them; frames are left where they are.
static void wait_for_end(struct wire *wire, struct pollfd *events) {
    do
        system_wait(events, NO_FRAMES, NULL);
    while (requested(wire, events) != REQUEST_END);
}

// The link must not outlive its maker, even if that was killed before this line was reached.
static void die_with_parent(pid_t parent) {
    if (prctl(PR_SET_PDEATHSIG, SIGTERM))
        die(EXIT_FAILED, "cannot set the signal of the parent's death: %s", strerror(errno));
    if (getppid() != parent)
        die(EXIT_FAILED, "the parent process has died");
}

// A priority that the machine does not permit makes the link later, not wrong. It is reported.
static struct scheduling schedule_promptly(void) {
    if (prctl(PR_SET_TIMERSLACK, 1))
        die(EXIT_FAILED, "cannot set the timer slack: %s", strerror(errno));
    struct sched_param priority = {.sched_priority = FIFO_PRIORITY};
    return (struct scheduling){
        .fifo = sched_setscheduler(0, SCHED_FIFO, &priority) == 0,
        // Not MCL_FUTURE: under a limit on locked memory it would make the pool's growth fail.
        .memory_locked = mlockall(MCL_CURRENT) == 0,
    };
}

static int block_signals(void) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    int fd = system_signalfd(&signals);
    signal(SIGPIPE, SIG_IGN); // a reader who has gone away is an error of the write
    return fd;
}

int main(int argc, char **argv) {
    pid_t parent = getppid();
    static struct wire wire;
    wire.argc = argc;
    wire.argv = argv;
    wire.options = options_parse(argc, argv);
    wire.signals = block_signals();
    die_with_parent(parent);

    way_init(&wire.up, &wire.near, &wire.far, &wire.options.up.settings);
    way_init(&wire.down, &wire.far, &wire.near, &wire.options.down.settings);
    origin_open(&wire.origin, wire.options.origin_fd);
    memcpy(wire.origin.clients, wire.options.clients, sizeof wire.origin.clients);
    wire.origin.client_count = wire.options.client_count;
    frame_pool_init(&wire.pool, wire.options.up.settings.max_frame_size);
    direction_lend(&wire.up.direction, &wire.pool);
    direction_lend(&wire.down.direction, &wire.pool);
    if (!frame_pool_grow(&wire.pool))
        die(EXIT_FAILED, "out of memory for the first frames");
    tap_open(&wire.near, wire.options.near.netns, wire.options.near.interface, wire.options.mtu,
             wire.options.keep_interfaces);
    tap_open(&wire.far, wire.options.far.netns, wire.options.far.interface, wire.options.mtu,
             wire.options.keep_interfaces);
    wire.scheduling = schedule_promptly();

    wire.started_ns = system_now_ns();
    wire.started_cpu_ns = system_cpu_ns();
    waking_init(&wire.waking, wire.started_ns);
    rest_init(&wire.rest, wire.started_ns, wire.started_cpu_ns);
    report_ready(&wire.options, &wire.scheduling);
    struct pollfd events[EVENTS] = {
        [COMMANDS] = {STDIN_FILENO, POLLIN, 0},
        [SIGNALS] = {wire.signals, POLLIN, 0},
        [NEAR] = {wire.near.fd, POLLIN, 0},
        [FAR] = {wire.far.fd, POLLIN, 0},
    };
    enum request request = forward(&wire, events);
    report(&wire);
    if (request == REQUEST_FINISH)
        wait_for_end(&wire, events);
    return 0;
}
