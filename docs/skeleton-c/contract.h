// The contract of endpoints (quic-impls/README.md): the file that one is started with, and what it says.
#ifndef CONTRACT_H
#define CONTRACT_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

enum { EXIT_WRONG_CALL = 2, EXIT_UNSUPPORTED = 127 };

struct assignment {
    bool is_server;
    bool is_upload;
    bool is_asked_later; // of the workload requests: what is transferred is read on standard input
    struct sockaddr_in address;
    const char *server_name;
    uint64_t size_bytes;
    uint64_t content_seed;
    const char *congestion_control;
    const char *certificate; // of a server
    const char *private_key; // of a server
    const char *authority;
    double deadline_s;
};

struct metric {
    const char *name;
    double value;
};

// The assignment in the file. Ends the program with one line when it is none, or asks for something else.
struct assignment read_assignment(const char *path);

// Where the qlog of the next connection goes; NULL without QLOGDIR. The path is good until the next call.
const char *next_qlog(const struct assignment *assignment);

void say_ready(void);

// An object of so many bytes has arrived; times are nanoseconds of CLOCK_MONOTONIC.
void say_object(uint64_t size_bytes, const uint64_t times[3]);

// How many bytes a line of standard input asks for. Ends the program with one line when it asks for nothing.
uint64_t read_request(const char *line);

void say_done(const struct metric *metrics, int count);

// Ends the program with one line on standard error.
_Noreturn void fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
