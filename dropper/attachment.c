#define _GNU_SOURCE
#include "attachment.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "clsact.h"
#include "failure.h"

/* The BPF object file, put into the command by the Makefile. */
extern const char dropper_object[];
extern const char dropper_object_end[];

static const uint32_t only = 0; /* the key of maps of one value */

/* ---- Where ---- */

static void enter_network_namespace(const char *netns) {
    const char *kind = strchr(netns, '/')                             ? "%s"
                       : strspn(netns, "0123456789") == strlen(netns) ? "/proc/%s/ns/net"
                                                                      : "/run/netns/%s";
    char path[PATH_MAX];
    int fd;

    snprintf(path, sizeof(path), kind, netns);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        fail(errno, "--netns %s: cannot open %s", netns, path);
    if (setns(fd, CLONE_NEWNET) != 0)
        fail(errno, "--netns %s: cannot enter %s", netns, path);
    close(fd);
}

/* The program reads Ethernet headers, so a TUN or another interface without them would look empty to it. */
static void require_ethernet(const char *interface) {
    struct ifreq request = {0};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", interface);
    if (fd < 0 || ioctl(fd, SIOCGIFHWADDR, &request) != 0)
        fail(errno, "--dev %s: cannot read its type", interface);
    close(fd);
    if (request.ifr_hwaddr.sa_family != ARPHRD_ETHER && request.ifr_hwaddr.sa_family != ARPHRD_LOOPBACK)
        fail(0, "--dev %s: must be an interface with Ethernet headers (its type is %u)", interface,
             request.ifr_hwaddr.sa_family);
}

struct place enter(const char *netns, const char *interface, enum bpf_tc_attach_point direction) {
    struct place place = {.interface = interface, .direction = direction};

    if (netns)
        enter_network_namespace(netns);
    place.ifindex = if_nametoindex(interface);
    if (!place.ifindex)
        fail(0, "--dev %s: no such interface in %s", interface, netns ? netns : "this network namespace");
    require_ethernet(interface);
    return place;
}

const char *direction_name(const struct place *place) {
    return place->direction == BPF_TC_INGRESS ? "ingress" : "egress";
}

static struct place opposite(const struct place *place) {
    struct place other = *place;

    other.direction = place->direction == BPF_TC_INGRESS ? BPF_TC_EGRESS : BPF_TC_INGRESS;
    return other;
}

/* libbpf refuses padding that is not zero, which an initializer need not make so. */
static void name_hook(struct bpf_tc_hook *hook, const struct place *place) {
    memset(hook, 0, sizeof(*hook));
    hook->sz = sizeof(*hook);
    hook->ifindex = place->ifindex;
    hook->attach_point = place->direction;
}

static void name_our_filter(struct bpf_tc_opts *filter) {
    memset(filter, 0, sizeof(*filter));
    filter->sz = sizeof(*filter);
    filter->handle = DROPPER_HANDLE;
    filter->priority = DROPPER_PRIORITY;
}

/* ---- Finding ---- */

static void read_program(uint32_t id, struct bpf_prog_info *info) {
    uint32_t size = sizeof(*info);
    int fd = bpf_prog_get_fd_by_id(id);

    if (fd < 0 || bpf_obj_get_info_by_fd(fd, info, &size) != 0)
        fail(errno, "cannot read what BPF program %u is", id);
    close(fd);
}

static void take_map(struct attached *attached, int fd) {
    struct bpf_map_info info = {0};
    uint32_t size = sizeof(info);

    if (bpf_obj_get_info_by_fd(fd, &info, &size) != 0)
        fail(errno, "cannot read what a map of BPF program %u is", attached->program_id);
    if (strcmp(info.name, DROPPER_CONFIGURATION) == 0 &&
        info.value_size == sizeof(struct dropper_configuration))
        attached->configuration = fd;
    else if (strcmp(info.name, "state") == 0 && info.value_size == sizeof(dropper_state))
        attached->state = fd;
    else if (strcmp(info.name, "counters") == 0 && info.value_size == sizeof(struct dropper_counters))
        attached->counters = fd;
    else if (strcmp(info.name, "verdicts") == 0) {
        attached->verdicts = fd;
        attached->recorded = (uint64_t)info.max_entries * LOSSES_PER_WORD;
    } else if (strcmp(info.name, "arrivals") == 0)
        attached->arrivals = fd;
    else
        close(fd);
}

static struct attached open_maps(uint32_t program_id, const uint32_t *map_ids, uint32_t maps) {
    struct attached attached = {.program_id = program_id,
                                .configuration = -1,
                                .state = -1,
                                .counters = -1,
                                .verdicts = -1,
                                .arrivals = -1};

    for (uint32_t i = 0; i < maps; i++) {
        int fd = bpf_map_get_fd_by_id(map_ids[i]);

        if (fd < 0)
            fail(errno, "cannot open map %u of BPF program %u", map_ids[i], program_id);
        take_map(&attached, fd);
    }
    if (attached.configuration < 0 || attached.state < 0 || attached.counters < 0 || attached.verdicts < 0 ||
        attached.arrivals < 0)
        fail(0, "program %u was attached by another version of this command: remove it by tc filter del",
             program_id);
    return attached;
}

/* True if no other program holds our place; program_id is 0 if it is free. */
static bool find_ours(const struct place *place, struct attached *attached) {
    uint32_t map_ids[16], id;
    struct bpf_prog_info info = {.nr_map_ids = sizeof(map_ids) / sizeof(map_ids[0]),
                                 .map_ids = (uintptr_t)map_ids};

    *attached = (struct attached){.program_id = 0};
    if (!find_filter(place->ifindex, place->direction, DROPPER_PRIORITY, DROPPER_HANDLE, &id))
        return true;
    if (!id)
        return false;
    read_program(id, &info);
    if (strcmp(info.name, DROPPER_PROGRAM) != 0)
        return false;
    *attached = open_maps(id, map_ids, info.nr_map_ids);
    return true;
}

struct attached find(const struct place *place) {
    struct attached attached;

    if (!find_ours(place, &attached))
        fail(0,
             "%s %s: the place of the dropper (handle %#x, priority %u) is held by a filter of somebody else",
             place->interface, direction_name(place), DROPPER_HANDLE, DROPPER_PRIORITY);
    return attached;
}

/* ---- Reading ---- */

struct dropper_configuration read_configuration(const struct attached *attached) {
    struct dropper_configuration configuration;

    if (bpf_map_lookup_elem(attached->configuration, &only, &configuration) != 0)
        fail(errno, "cannot read the configuration");
    return configuration;
}

uint64_t read_packets(const struct attached *attached) {
    dropper_state state;

    if (bpf_map_lookup_elem(attached->state, &only, &state) != 0)
        fail(errno, "cannot read the state");
    return DROPPER_STATE_PACKETS(state);
}

struct dropper_counters read_counters(const struct attached *attached) {
    struct dropper_counters counters;

    if (bpf_map_lookup_elem(attached->counters, &only, &counters) != 0)
        fail(errno, "cannot read the counters");
    return counters;
}

static size_t bytes_of(uint64_t verdicts) {
    return (verdicts + LOSSES_PER_WORD - 1) / LOSSES_PER_WORD * sizeof(uint64_t);
}

struct verdicts read_verdicts(const struct attached *attached, uint64_t packets) {
    struct verdicts verdicts = {.length = packets < attached->recorded ? packets : attached->recorded};

    verdicts.words = mmap(NULL, bytes_of(attached->recorded), PROT_READ, MAP_SHARED, attached->verdicts, 0);
    if (verdicts.words == MAP_FAILED)
        fail(errno, "cannot read the verdicts");
    return verdicts;
}

const uint64_t *read_arrivals(const struct attached *attached) {
    const uint64_t *arrivals;

    if (!losses_is_clocked(read_configuration(attached).model))
        return NULL;
    arrivals =
        mmap(NULL, attached->recorded * sizeof(uint64_t), PROT_READ, MAP_SHARED, attached->arrivals, 0);
    if (arrivals == MAP_FAILED)
        fail(errno, "cannot read the arrivals");
    return arrivals;
}

/* ---- Attaching ---- */

static struct bpf_map *map_named(struct bpf_object *object, const char *name) {
    struct bpf_map *map = bpf_object__find_map_by_name(object, name);

    if (!map)
        fail(ENOENT, "map %s of the BPF object", name);
    return map;
}

static void size_map(struct bpf_object *object, const char *name, uint64_t words) {
    int error = bpf_map__set_max_entries(map_named(object, name), words ? words : 1);

    if (error)
        fail(error, "cannot give map %s room for %llu words", name, (unsigned long long)words);
}

static void write_words(struct bpf_object *object, const char *name, const uint64_t *words, size_t bytes) {
    int map = bpf_map__fd(map_named(object, name));
    uint64_t *written;

    if (!bytes)
        return;
    written = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, map, 0);
    if (written == MAP_FAILED)
        fail(errno, "cannot write map %s", name);
    memcpy(written, words, bytes);
    munmap(written, bytes);
}
/* When each stay of ge-time ends, in ns; NULL for any other model. */
static uint64_t *draw_stays(const struct written_losses *losses) {
    losses_u64 drawn = 0, ended_us = 0;
    uint64_t *ends;

    if (!losses->good_us)
        return NULL;
    ends = calloc(LOSSES_STAYS, sizeof(*ends));
    if (!ends)
        fail(ENOMEM, "cannot draw the stays of the model");
    for (uint32_t i = 0; i < LOSSES_STAYS; i++) {
        ended_us += losses_stay_us(losses->losses.seed, i % 2 ? losses->bad_us : losses->good_us, &drawn);
        ends[i] = 1000 * ended_us;
    }
    return ends;
}

static struct bpf_object *open_object(const struct dropper_configuration *configuration,
                                      const struct written_losses *losses, uint64_t recorded) {
    struct bpf_object *object =
        bpf_object__open_mem(dropper_object, dropper_object_end - dropper_object, NULL);
    int error;

    if (!object)
        fail(errno, "cannot open the BPF object");
    size_map(object, "verdicts", bytes_of(recorded) / sizeof(uint64_t));
    size_map(object, "pattern", bytes_of(losses->pattern.length) / sizeof(uint64_t));
    size_map(object, "arrivals", losses_is_clocked(configuration->model) ? recorded : 0);
    size_map(object, "stays", losses->good_us ? LOSSES_STAYS : 0);
    error = bpf_map__set_initial_value(map_named(object, DROPPER_CONFIGURATION), configuration,
                                       sizeof(*configuration));
    if (error)
        fail(error, "cannot write the configuration");
    return object;
}

/* Whether a dropper made the clsact qdisc, as the droppers that are attached now have recorded. */
static bool made_by_us(const struct place *place) {
    struct attached attached;

    return find_ours(place, &attached) && attached.program_id && read_configuration(&attached).made_clsact;
}

/* True if the qdisc is ours to remove: made now, or by an earlier dropper of this interface. */
static bool provide_clsact(const struct place *place) {
    struct place other = opposite(place);
    bool ours = made_by_us(place) || made_by_us(&other);
    struct bpf_tc_hook hook;
    int error;

    name_hook(&hook, place);
    error = bpf_tc_hook_create(&hook);
    if (error && error != -EEXIST)
        fail(error, "cannot add a clsact qdisc to %s%s", place->interface,
             error == -EPERM ? ": this needs root" : "");
    forget_libbpf_warning();
    return ours || !error;
}

/* Others may have come to use the qdisc since it was made. */
static void remove_unused_clsact(const struct place *place) {
    struct bpf_tc_hook hook;
    int error;

    if (has_filter_chains(place->ifindex))
        return;
    name_hook(&hook, place);
    hook.attach_point = BPF_TC_INGRESS | BPF_TC_EGRESS; /* the qdisc itself, in libbpf's terms */
    error = bpf_tc_hook_destroy(&hook);
    if (error)
        fail(error, "cannot remove the clsact qdisc of %s", place->interface);
}

/* Refuses a place where we cannot attach, before anything is touched. */
static bool occupied_by_us(const struct place *place) {
    if (place->direction == BPF_TC_EGRESS && has_ingress_qdisc(place->ifindex))
        fail(0,
             "--egress: %s has an ingress qdisc, which runs no filters at egress: remove it, or make it "
             "clsact",
             place->interface);
    return find(place).program_id != 0;
}

/* Loads the program, and writes the data of losses that is too large for the configuration. */
static int load(struct bpf_object *object, const struct written_losses *losses, const uint64_t *stays) {
    int error = bpf_object__load(object);

    if (error)
        return error;
    write_words(object, "pattern", losses->pattern.words, bytes_of(losses->pattern.length));
    write_words(object, "stays", stays, stays ? LOSSES_STAYS * sizeof(*stays) : 0);
    return 0;
}

uint32_t attach(const struct place *place, struct dropper_configuration configuration,
                const struct written_losses *losses, uint64_t recorded) {
    bool replace = occupied_by_us(place);
    uint64_t *stays = draw_stays(losses);
    struct bpf_object *object;
    struct bpf_tc_hook hook;
    struct bpf_tc_opts filter;
    int unloaded, error;

    configuration.cycle_ns = stays ? stays[LOSSES_STAYS - 1] : 0;
    configuration.made_clsact = provide_clsact(place);
    object = open_object(&configuration, losses, recorded);
    error = unloaded = load(object, losses, stays);
    free(stays);
    if (!error) {
        name_hook(&hook, place);
        name_our_filter(&filter);
        filter.prog_fd = bpf_program__fd(bpf_object__find_program_by_name(object, DROPPER_PROGRAM));
        filter.flags = replace ? BPF_TC_F_REPLACE : 0;
        error = bpf_tc_attach(&hook, &filter);
    }
    if (!error)
        return filter.prog_id;
    if (configuration.made_clsact)
        remove_unused_clsact(place);
    if (unloaded)
        fail(unloaded, "cannot load the BPF program");
    fail(error, "cannot attach to %s %s (handle %#x, priority %u)", place->interface, direction_name(place),
         DROPPER_HANDLE, DROPPER_PRIORITY);
}

bool detach(const struct place *place) {
    struct attached attached = find(place);
    struct bpf_tc_hook hook;
    struct bpf_tc_opts filter;
    bool made_clsact;
    int error;

    if (!attached.program_id)
        return false;
    made_clsact = read_configuration(&attached).made_clsact;
    name_hook(&hook, place);
    name_our_filter(&filter);
    error = bpf_tc_detach(&hook, &filter);
    if (error)
        fail(error, "cannot detach from %s %s", place->interface, direction_name(place));
    if (made_clsact)
        remove_unused_clsact(place);
    return true;
}
