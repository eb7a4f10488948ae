#include "clsact.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/netlink.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>

#include "failure.h"

typedef bool (*property)(const struct nlmsghdr *message, int ifindex);

/* Asks for all objects of the type under the parent; returns the socket on which the answer comes. */
static int ask(uint16_t type, int ifindex, uint32_t parent) {
    const struct {
        struct nlmsghdr header;
        struct tcmsg about;
    } question = {
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
static bool read_part(int fd, int ifindex, property property, bool *found) {
    _Alignas(struct nlmsghdr) char part[32768]; /* the largest that the kernel makes of a dump */
    int left = recv(fd, part, sizeof(part), 0);

    if (left < 0)
        fail(errno, "cannot read the filters of interface %d", ifindex);
    for (const struct nlmsghdr *message = (void *)part; NLMSG_OK(message, (unsigned int)left);
         message = NLMSG_NEXT(message, left)) {
        if (message->nlmsg_type == NLMSG_DONE)
            return false;
        if (message->nlmsg_type == NLMSG_ERROR)
            fail(((struct nlmsgerr *)NLMSG_DATA(message))->error, "cannot read the filters of interface %d",
                 ifindex);
        *found |= property(message, ifindex);
    }
    return true;
}

static bool any(uint16_t type, int ifindex, uint32_t parent, property property) {
    int fd = ask(type, ifindex, parent);
    bool found = false;

    while (read_part(fd, ifindex, property, &found))
        continue;
    close(fd);
    return found;
}

/* The kernel lists the qdiscs of all interfaces, whatever was asked. */
static bool is_ingress_qdisc(const struct nlmsghdr *message, int ifindex) {
    const struct tcmsg *qdisc = NLMSG_DATA(message);
    int left = TCA_PAYLOAD(message);

    if (qdisc->tcm_ifindex != ifindex)
        return false;
    for (const struct rtattr *attribute = TCA_RTA(qdisc); RTA_OK(attribute, left);
         attribute = RTA_NEXT(attribute, left))
        if (attribute->rta_type == TCA_KIND)
            return strcmp(RTA_DATA(attribute), "ingress") == 0;
    return false;
}

static bool is_chain(const struct nlmsghdr *message, int ifindex) {
    const struct tcmsg *chain = NLMSG_DATA(message);

    return message->nlmsg_type == RTM_NEWCHAIN && chain->tcm_ifindex == ifindex;
}

bool has_ingress_qdisc(int ifindex) {
    return any(RTM_GETQDISC, ifindex, 0, is_ingress_qdisc);
}

bool has_filter_chains(int ifindex) {
    return any(RTM_GETCHAIN, ifindex, TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS), is_chain) ||
           any(RTM_GETCHAIN, ifindex, TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_EGRESS), is_chain);
}
