#include "clsact.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/netlink.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>

#include "failure.h"

struct question {
    struct nlmsghdr header;
    struct tcmsg about;
};

/* Called for each object of an answer. */
typedef void (*reader)(const struct nlmsghdr *message, void *context);

/* ---- Questions and answers ---- */

/* Asks for all objects of the type under the parent; returns the socket on which the answer comes. */
static int ask(uint16_t type, int ifindex, uint32_t parent) {
    const struct question question = {
        .header = {.nlmsg_len = sizeof(question),
                   .nlmsg_type = type,
                   .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
        .about = {.tcm_ifindex = ifindex, .tcm_parent = parent},
    };
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

    if (fd < 0 || send(fd, &question, sizeof(question), 0) != sizeof(question))
        fail(errno, "cannot ask for the filters of interface %d", ifindex);
    return fd;
}

/* Reads one part of the answer; false when it was the last. */
static bool read_part(int fd, int ifindex, reader read, void *context) {
    _Alignas(struct nlmsghdr) char part[32768]; /* the largest that the kernel makes of a dump */
    int left = recv(fd, part, sizeof(part), 0);

    if (left < 0)
        fail(errno, "cannot read the filters of interface %d", ifindex);
    for (const struct nlmsghdr *message = (void *)part; NLMSG_OK(message, (unsigned int)left);
         message = NLMSG_NEXT(message, left)) {
        const struct tcmsg *object = NLMSG_DATA(message);

        if (message->nlmsg_type == NLMSG_DONE)
            return false;
        if (message->nlmsg_type == NLMSG_ERROR)
            fail(((struct nlmsgerr *)NLMSG_DATA(message))->error, "cannot read the filters of interface %d",
                 ifindex);
        if (object->tcm_ifindex == ifindex) /* qdiscs come of all interfaces, whatever was asked */
            read(message, context);
    }
    return true;
}

static void read_all(uint16_t type, int ifindex, uint32_t parent, reader read, void *context) {
    int fd = ask(type, ifindex, parent);

    while (read_part(fd, ifindex, read, context))
        continue;
    close(fd);
}

static uint32_t parent_of(enum bpf_tc_attach_point direction) {
    return TC_H_MAKE(TC_H_CLSACT, direction == BPF_TC_INGRESS ? TC_H_MIN_INGRESS : TC_H_MIN_EGRESS);
}

static const struct rtattr *attribute_of(const struct rtattr *first, int left, unsigned short type) {
    for (const struct rtattr *attribute = first; RTA_OK(attribute, left);
         attribute = RTA_NEXT(attribute, left))
        if ((attribute->rta_type & NLA_TYPE_MASK) == type)
            return attribute;
    return NULL;
}

static const struct rtattr *attribute(const struct nlmsghdr *message, unsigned short type) {
    return attribute_of(TCA_RTA(NLMSG_DATA(message)), TCA_PAYLOAD(message), type);
}

static bool is_kind(const struct nlmsghdr *message, const char *kind) {
    const struct rtattr *named = attribute(message, TCA_KIND);

    return named && strcmp(RTA_DATA(named), kind) == 0;
}

/* ---- Qdiscs and chains ---- */

static void read_qdisc(const struct nlmsghdr *message, void *found) {
    *(bool *)found |= is_kind(message, "ingress");
}

bool has_ingress_qdisc(int ifindex) {
    bool found = false;

    read_all(RTM_GETQDISC, ifindex, 0, read_qdisc, &found);
    return found;
}

static void read_chain(const struct nlmsghdr *message, void *found) {
    *(bool *)found |= message->nlmsg_type == RTM_NEWCHAIN;
}

bool has_filter_chains(int ifindex) {
    bool found = false;

    read_all(RTM_GETCHAIN, ifindex, parent_of(BPF_TC_INGRESS), read_chain, &found);
    read_all(RTM_GETCHAIN, ifindex, parent_of(BPF_TC_EGRESS), read_chain, &found);
    return found;
}

/* ---- Filters ---- */

struct wanted {
    uint32_t priority;
    uint32_t handle;
    bool found;
    uint32_t program_id;
};

static uint32_t number(const struct rtattr *attribute) {
    return attribute ? *(uint32_t *)RTA_DATA(attribute) : 0;
}

static void read_filter(const struct nlmsghdr *message, void *context) {
    const struct tcmsg *filter = NLMSG_DATA(message);
    const struct rtattr *options = attribute(message, TCA_OPTIONS);
    struct wanted *wanted = context;

    if (TC_H_MAJ(filter->tcm_info) >> 16 != wanted->priority || filter->tcm_handle != wanted->handle ||
        number(attribute(message, TCA_CHAIN)) != 0)
        return;
    wanted->found = true;
    if (options && is_kind(message, "bpf"))
        wanted->program_id = number(attribute_of(RTA_DATA(options), RTA_PAYLOAD(options), TCA_BPF_ID));
}

bool find_filter(int ifindex, enum bpf_tc_attach_point direction, uint32_t priority, uint32_t handle,
                 uint32_t *program_id) {
    struct wanted wanted = {.priority = priority, .handle = handle};

    read_all(RTM_GETTFILTER, ifindex, parent_of(direction), read_filter, &wanted);
    *program_id = wanted.program_id;
    return wanted.found;
}
