// System calls that must not fail: each says what was attempted, and ends the program with one line if it
// fails.
#pragma once

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

enum { EXIT_FAILED = 1, EXIT_BAD_INPUT = 2 };

// One line on standard error, and the end.
void die(int status, const char *format, ...) __attribute__((noreturn, format(printf, 2, 3)));

uint64_t system_now_ns(void);
uint64_t system_cpu_ns(void); // taken by this program
int system_open(const char *path, int flags);
void system_close(int fd);
void system_ioctl(int fd, unsigned long request, void *argument, const char *attempt);
int system_socket(void);
void system_enter_netns(int netns, const char *path);
int system_signalfd(const sigset_t *signals);

// Returns the command's result, a descriptor for instance. `attr` is a union bpf_attr.
int system_bpf(int command, void *attr, unsigned size, const char *attempt);

// A map of one value of `size` bytes, to be read.
const void *system_map(int fd, size_t size, const char *what);

// Memory of `size` bytes that other processes write, too.
void *system_map_shared(int fd, size_t size, const char *what);

// Waits for an event; without a timeout (NULL) for as long as it takes. False when the time was over.
bool system_wait(struct pollfd *events, nfds_t count, const struct timespec *timeout);

// Bytes read, 0 at the end of the file.
size_t system_read(int fd, void *buffer, size_t size, const char *what);

// At most size - 1 bytes of a file of /proc from its start, with a terminating zero.
void system_read_text(int fd, char *buffer, size_t size, const char *what);
