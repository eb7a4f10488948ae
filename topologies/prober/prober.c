// prober: sends numbered UDP datagrams from one network namespace to another, and says when each was sent and
// when the kernel there received it. `prober --help` says how it is used.
//
// Both times are of CLOCK_REALTIME, the clock of the kernel's receive timestamps. The clock is read right
// before each send, so a sender that is late is no error of what is measured; reading the datagrams late is
// none either.
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    EXIT_FAILED = 1,
    EXIT_BAD_INPUT = 2,
    FIFO_PRIORITY = 40, // above endpoints and harness, below the link that is measured
    HEADERS = 14 + 20 + 8,
    MAX_FRAME = 1514,
    BATCH = 64,
    LOOK_EVERY_NS = 10000000,
    RECEIVE_BUFFER = 512 << 20, // all datagrams of a run: the receiver need not keep up
};

#define NS_PER_S 1000000000ull
#define NS_PER_MS 1000000ull

static const char USAGE[] =
    "Usage: prober --from-netns PATH --source IPV4 --to-netns PATH --address IPV4 --port N\n"
    "              --count N --frame-bytes N --spacing-ns N --seed N --patience-ms N\n"
    "\n"
    "Sends `count` datagrams in frames of `frame-bytes` (with the Ethernet header), at random 0.5 to 1.5\n"
    "times `spacing-ns` apart (0: as fast as it can). Ends when all were received, or when none came for\n"
    "`patience-ms`. Prints a line of JSON: `fifo`, whether SCHED_FIFO was granted; `sent_ns`, when each was\n"
    "sent; `numbers`, those of the received ones in their order; `received_ns`, when each of these was.\n";

struct options {
    const char *from_netns, *to_netns;
    struct sockaddr_in source, to;
    uint64_t count, frame_bytes, spacing_ns, seed, patience_ms;
};

static struct options options;
static bool fifo;
static uint64_t *sent_ns;
static uint32_t *numbers;
static uint64_t *received_ns;
static uint64_t received;
static atomic_bool all_sent;

static void die(int status, const char *format, ...) __attribute__((noreturn, format(printf, 2, 3)));

static void die(int status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("prober: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(status);
}

static uint64_t whole_number(const char *option, const char *text, uint64_t minimum, uint64_t maximum) {
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (!isdigit((unsigned char)text[0]) || *end || errno || value < minimum || value > maximum)
        die(EXIT_BAD_INPUT, "--%s %s: must be a whole number from %" PRIu64 " to %" PRIu64, option, text,
            minimum, maximum);
    return value;
}

static struct sockaddr_in ipv4_address(const char *option, const char *text) {
    struct sockaddr_in address = {.sin_family = AF_INET};
    if (inet_pton(AF_INET, text, &address.sin_addr) != 1)
        die(EXIT_BAD_INPUT, "--%s %s: must be an IPv4 address", option, text);
    return address;
}

static void parse_options(int argc, char **argv) {
    enum { FROM, SOURCE, TO, ADDRESS, PORT, COUNT, FRAME, SPACING, SEED, PATIENCE, GIVEN, HELP = GIVEN };
    static const struct option known[] = {
        {"from-netns", required_argument, NULL, FROM},
        {"source", required_argument, NULL, SOURCE},
        {"to-netns", required_argument, NULL, TO},
        {"address", required_argument, NULL, ADDRESS},
        {"port", required_argument, NULL, PORT},
        {"count", required_argument, NULL, COUNT},
        {"frame-bytes", required_argument, NULL, FRAME},
        {"spacing-ns", required_argument, NULL, SPACING},
        {"seed", required_argument, NULL, SEED},
        {"patience-ms", required_argument, NULL, PATIENCE},
        {"help", no_argument, NULL, HELP},
        {0},
    };
    unsigned given = 0;
    opterr = 0;
    for (int name, index; (name = getopt_long(argc, argv, "", known, &index)) != -1;) {
        const char *option = name == '?' ? NULL : known[index].name;
        switch (name) {
        case FROM:
            options.from_netns = optarg;
            break;
        case SOURCE:
            options.source = ipv4_address(option, optarg);
            break;
        case TO:
            options.to_netns = optarg;
            break;
        case ADDRESS:
            options.to.sin_family = AF_INET;
            options.to.sin_addr = ipv4_address(option, optarg).sin_addr;
            break;
        case PORT:
            options.to.sin_port = htons((uint16_t)whole_number(option, optarg, 1, 65535));
            break;
        case COUNT:
            options.count = whole_number(option, optarg, 1, 10000000);
            break;
        case FRAME:
            options.frame_bytes = whole_number(option, optarg, HEADERS + sizeof(uint32_t), MAX_FRAME);
            break;
        case SPACING:
            options.spacing_ns = whole_number(option, optarg, 0, 10 * NS_PER_S);
            break;
        case SEED:
            options.seed = whole_number(option, optarg, 0, UINT64_MAX);
            break;
        case PATIENCE:
            options.patience_ms = whole_number(option, optarg, 1, 3600000);
            break;
        case HELP:
            fputs(USAGE, stdout);
            exit(0);
        default:
            die(EXIT_BAD_INPUT, "%s is not an option, or lacks its value (see --help)", argv[optind - 1]);
        }
        given |= 1u << name;
    }
    if (optind < argc)
        die(EXIT_BAD_INPUT, "%s is not an option (see --help)", argv[optind]);
    for (int name = 0; name < GIVEN; name++)
        if (!(given & 1u << name))
            die(EXIT_BAD_INPUT, "--%s is missing (see --help)", known[name].name);
}

static uint64_t nanoseconds(struct timespec time) {
    return (uint64_t)time.tv_sec * NS_PER_S + (uint64_t)time.tv_nsec;
}

static uint64_t now_ns(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now); // neither clock can be missing
    return nanoseconds(now);
}

// The calling thread moves into the namespace, and makes the socket there.
static int socket_inside(const char *netns_path) {
    int netns = open(netns_path, O_RDONLY | O_CLOEXEC);
    if (netns < 0 || setns(netns, CLONE_NEWNET))
        die(EXIT_FAILED, "cannot enter network namespace %s: %s", netns_path, strerror(errno));
    close(netns);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        die(EXIT_FAILED, "cannot open a socket: %s", strerror(errno));
    return fd;
}

static int receiving_socket(void) {
    int fd = socket_inside(options.to_netns), on = 1, size = RECEIVE_BUFFER;
    if (setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on))
        die(EXIT_FAILED, "cannot ask for receive timestamps: %s", strerror(errno));
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size))
        die(EXIT_FAILED, "cannot get a receive buffer of %d bytes: %s", size, strerror(errno));
    if (bind(fd, (struct sockaddr *)&options.to, sizeof options.to))
        die(EXIT_FAILED, "cannot bind to port %d: %s", ntohs(options.to.sin_port), strerror(errno));
    return fd;
}

static int sending_socket(void) {
    int fd = socket_inside(options.from_netns);
    if (bind(fd, (struct sockaddr *)&options.source, sizeof options.source))
        die(EXIT_FAILED, "cannot bind to the source: %s", strerror(errno));
    return fd;
}

static uint64_t kernel_timestamp(struct msghdr *message) {
    for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part; part = CMSG_NXTHDR(message, part)) {
        if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SO_TIMESTAMPNS) {
            struct timespec time;
            memcpy(&time, CMSG_DATA(part), sizeof time);
            return nanoseconds(time);
        }
    }
    die(EXIT_FAILED, "a datagram has no receive timestamp");
}

// False when there is nothing to be received.
static bool receive_batch(int fd) {
    static uint32_t contents[BATCH];
    static struct {
        _Alignas(struct cmsghdr) char bytes[CMSG_SPACE(sizeof(struct timespec))];
    } controls[BATCH];
    struct iovec parts[BATCH];
    struct mmsghdr messages[BATCH];
    for (int i = 0; i < BATCH; i++) {
        parts[i] = (struct iovec){&contents[i], sizeof contents[i]}; // the rest of it is of no interest
        messages[i].msg_hdr = (struct msghdr){
            .msg_iov = &parts[i],
            .msg_iovlen = 1,
            .msg_control = controls[i].bytes,
            .msg_controllen = sizeof controls[i].bytes,
        };
    }
    int count = recvmmsg(fd, messages, BATCH, MSG_DONTWAIT, NULL);
    if (count < 0 && errno != EAGAIN)
        die(EXIT_FAILED, "cannot receive: %s", strerror(errno));
    for (int i = 0; i < count && received < options.count; i++) {
        numbers[received] = contents[i];
        received_ns[received++] = kernel_timestamp(&messages[i].msg_hdr);
    }
    return count > 0;
}

// Looks now and then: otherwise the link, which delivers the datagrams, would spend its time on waking us.
static void *receive_all(void *socket) {
    const struct timespec pause = {0, LOOK_EVERY_NS};
    uint64_t heard_ns = now_ns(CLOCK_MONOTONIC);
    while (received < options.count) {
        bool last_chance = atomic_load(&all_sent);
        if (receive_batch(*(int *)socket)) {
            heard_ns = now_ns(CLOCK_MONOTONIC);
            continue;
        }
        if (!last_chance)
            heard_ns = now_ns(CLOCK_MONOTONIC);
        else if (now_ns(CLOCK_MONOTONIC) - heard_ns > options.patience_ms * NS_PER_MS)
            break;
        nanosleep(&pause, NULL);
    }
    return NULL;
}

// 0.5 to 1.5 times the mean.
static uint64_t random_spacing(unsigned short state[3]) {
    return (uint64_t)((0.5 + erand48(state)) * (double)options.spacing_ns);
}

static void send_all(int fd) {
    unsigned short state[] = {(unsigned short)options.seed, (unsigned short)(options.seed >> 16),
                              (unsigned short)(options.seed >> 32)};
    static uint8_t datagram[MAX_FRAME];
    uint64_t due_ns = now_ns(CLOCK_MONOTONIC);
    for (uint32_t number = 0; number < options.count; number++) {
        memcpy(datagram, &number, sizeof number);
        due_ns += random_spacing(state);
        struct timespec due = {(time_t)(due_ns / NS_PER_S), (long)(due_ns % NS_PER_S)};
        if (options.spacing_ns)
            while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL) == EINTR)
                continue;
        sent_ns[number] = now_ns(CLOCK_REALTIME);
        if (sendto(fd, datagram, options.frame_bytes - HEADERS, 0, (struct sockaddr *)&options.to,
                   sizeof options.to) < 0)
            die(EXIT_FAILED, "cannot send: %s", strerror(errno));
    }
    atomic_store(&all_sent, true);
}

// A priority that the machine does not permit makes the traffic less regular, not the measurement wrong. It
// is reported.
static void schedule_promptly(void) {
    if (prctl(PR_SET_TIMERSLACK, 1))
        die(EXIT_FAILED, "cannot set the timer slack: %s", strerror(errno));
    struct sched_param priority = {.sched_priority = FIFO_PRIORITY};
    fifo = sched_setscheduler(0, SCHED_FIFO, &priority) == 0;
}

static void *allocate(size_t size) {
    void *memory = calloc(options.count, size);
    if (!memory)
        die(EXIT_FAILED, "out of memory for %" PRIu64 " datagrams", options.count);
    memset(memory, 1, options.count * size); // page faults now, not between clock and send
    return memory;
}

static void print_list(const char *name, uint64_t count, const uint64_t *values) {
    printf(",\"%s\":[", name);
    for (uint64_t i = 0; i < count; i++)
        printf(i ? ",%" PRIu64 : "%" PRIu64, values[i]);
    putchar(']');
}

static void report(void) {
    printf("{\"fifo\":%s,\"numbers\":[", fifo ? "true" : "false");
    for (uint64_t i = 0; i < received; i++)
        printf(i ? ",%" PRIu32 : "%" PRIu32, numbers[i]);
    putchar(']');
    print_list("sent_ns", options.count, sent_ns);
    print_list("received_ns", received, received_ns);
    puts("}");
    if (fflush(stdout))
        die(EXIT_FAILED, "cannot write to standard output");
}

int main(int argc, char **argv) {
    parse_options(argc, argv);
    sent_ns = allocate(sizeof *sent_ns);
    numbers = allocate(sizeof *numbers);
    received_ns = allocate(sizeof *received_ns);
    int receiving = receiving_socket();
    int sending = sending_socket();
    pthread_t receiver;
    int failure = pthread_create(&receiver, NULL, receive_all, &receiving);
    if (failure)
        die(EXIT_FAILED, "cannot start the receiving thread: %s", strerror(failure));
    schedule_promptly();
    send_all(sending);
    failure = pthread_join(receiver, NULL);
    if (failure)
        die(EXIT_FAILED, "cannot await the receiving thread: %s", strerror(failure));
    report();
    return 0;
}
