#include "system.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

void die(int status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("wire: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(status);
}

static void die_of_errno(const char *attempt, const char *object) __attribute__((noreturn));

static void die_of_errno(const char *attempt, const char *object) {
    die(EXIT_FAILED, "cannot %s%s%s: %s", attempt, *object ? " " : "", object, strerror(errno));
}

static uint64_t clock_ns(clockid_t clock, const char *name) {
    struct timespec now;
    if (clock_gettime(clock, &now))
        die_of_errno("read", name);
    return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

uint64_t system_now_ns(void) {
    return clock_ns(CLOCK_MONOTONIC, "CLOCK_MONOTONIC");
}

uint64_t system_cpu_ns(void) {
    return clock_ns(CLOCK_PROCESS_CPUTIME_ID, "CLOCK_PROCESS_CPUTIME_ID");
}

int system_open(const char *path, int flags) {
    int fd = open(path, flags | O_CLOEXEC);
    if (fd < 0)
        die_of_errno("open", path);
    return fd;
}

void system_close(int fd) {
    if (close(fd))
        die_of_errno("close", "a file");
}

void system_ioctl(int fd, unsigned long request, void *argument, const char *attempt) {
    if (ioctl(fd, request, argument) < 0)
        die_of_errno(attempt, "");
}

int system_socket(void) {
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        die_of_errno("open", "a socket");
    return fd;
}

void system_enter_netns(int netns, const char *path) {
    if (setns(netns, CLONE_NEWNET))
        die_of_errno("enter network namespace", path);
}

int system_signalfd(const sigset_t *signals) {
    if (sigprocmask(SIG_BLOCK, signals, NULL))
        die_of_errno("block", "signals");
    int fd = signalfd(-1, signals, SFD_CLOEXEC);
    if (fd < 0)
        die_of_errno("open", "a signalfd");
    return fd;
}

int system_bpf(int command, void *attr, unsigned size, const char *attempt) {
    long result = syscall(SYS_bpf, command, attr, size);
    if (result < 0)
        die_of_errno(attempt, "");
    return (int)result;
}

static void *map(int fd, size_t size, int protection, const char *what) {
    void *memory = mmap(NULL, size, protection, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED)
        die_of_errno("map", what);
    return memory;
}

const void *system_map(int fd, size_t size, const char *what) {
    return map(fd, size, PROT_READ, what);
}

void *system_map_shared(int fd, size_t size, const char *what) {
    return map(fd, size, PROT_READ | PROT_WRITE, what);
}

bool system_wait(struct pollfd *events, nfds_t count, const struct timespec *timeout) {
    int happened = ppoll(events, count, timeout, NULL);
    if (happened >= 0)
        return happened > 0;
    if (errno != EINTR) // stopped and continued by a debugger or a shell
        die_of_errno("wait for", "frames");
    for (nfds_t i = 0; i < count; i++)
        events[i].revents = 0;
    return true;
}

size_t system_read(int fd, void *buffer, size_t size, const char *what) {
    ssize_t length = read(fd, buffer, size);
    if (length < 0)
        die_of_errno("read", what);
    return (size_t)length;
}

void system_read_text(int fd, char *buffer, size_t size, const char *what) {
    size_t length = 0;
    while (length < size - 1) {
        ssize_t more = pread(fd, buffer + length, size - 1 - length, (off_t)length);
        if (more < 0)
            die_of_errno("read", what);
        if (more == 0)
            break;
        length += (size_t)more;
    }
    buffer[length] = 0;
}
