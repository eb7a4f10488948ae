/* The task of the command: its command line, checked whole before anything is touched. */
#ifndef COMMAND_LINE_H
#define COMMAND_LINE_H

#include <stdbool.h>
#include <stdint.h>

#include <bpf/libbpf.h>

#include "attachment.h"
#include "dropper.h"
#include "written_losses.h"

enum action {
    ACTION_INVALID = 0,
    ACTION_ATTACH,
    ACTION_SHOW,
    ACTION_LOG,
    ACTION_DETACH,
    ACTION_USAGE,
};

struct request {
    enum action action;
    const char *netns; /* NULL: the one we are in */
    const char *interface;
    enum bpf_tc_attach_point direction;
    bool json;
    /* for attach */
    struct dropper_configuration configuration;
    struct written_losses losses;
    uint64_t recorded; /* verdicts to keep */
};

struct request read_command_line(int argc, char **argv);

void print_usage(void);

#endif
