// The command line. Anything that it doesn't know or that is impossible ends the program with one line and
// status 2.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "origin.h"
#include "written.h"

struct end_options {
    const char *netns;     // a path such as /proc/PID/ns/net
    const char *interface; // the TAP to make there
};

struct options {
    struct end_options near, far;
    struct written up, down; // up: from the near end to the far one
    uint32_t mtu;
    uint64_t late_bound_us;
    bool keep_interfaces;
    int origin_fd;                               // or -1
    struct client_address clients[MOST_CLIENTS]; // as struct origin has them
    unsigned client_count;
};

struct options options_parse(int argc, char **argv);
