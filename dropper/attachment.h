/*
 * A dropper at one side of one interface: made, found again and removed.
 * Nothing is pinned: the program is found by its handle and priority among the filters of the interface, and
 * its maps by the program. Filters that others have attached there are never replaced and never removed.
 */
#ifndef ATTACHMENT_H
#define ATTACHMENT_H

#include <stdbool.h>
#include <stdint.h>

#include <bpf/libbpf.h>

#include "dropper.h"
#include "written_losses.h"

struct place {
    const char *interface;
    int ifindex;
    enum bpf_tc_attach_point direction;
};

struct attached {
    uint32_t program_id; /* 0: nothing of ours is attached */
    int configuration;   /* file descriptors of its maps */
    int state;
    int counters;
    int verdicts;
    int arrivals;
    uint64_t recorded; /* verdicts that there is room for */
};

/* Enters the network namespace (a path, a name of `ip netns`, a process id; NULL: stays) and finds the
 * interface. */
struct place enter(const char *netns, const char *interface, enum bpf_tc_attach_point direction);

const char *direction_name(const struct place *place);

/* Attaches a dropper with a fresh state that keeps so many verdicts, in place of ours if one is there.
 * Returns its program id. */
uint32_t attach(const struct place *place, struct dropper_configuration configuration,
                const struct written_losses *losses, uint64_t recorded);

/* Fails if a program that is not ours sits at our handle. */
struct attached find(const struct place *place);

/* Removes our filter, and the clsact qdisc if a dropper made it and nothing else uses it. False: there was
 * none. */
bool detach(const struct place *place);

struct dropper_configuration read_configuration(const struct attached *attached);
uint64_t read_packets(const struct attached *attached);
struct dropper_counters read_counters(const struct attached *attached);

/* The recorded verdicts of the first packets, up to `packets`. */
struct verdicts read_verdicts(const struct attached *attached, uint64_t packets);

/* When each of as many packets arrived, in ns since packet 0; NULL if the losses are not clocked by time. */
const uint64_t *read_arrivals(const struct attached *attached);

#endif
