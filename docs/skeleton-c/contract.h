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

void say_ready(void);
void say_done(const struct metric *metrics, int count);

// Ends the program with one line on standard error.
_Noreturn void fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
