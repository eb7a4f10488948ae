/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause OR GPL-2.0-only */
/*
 * What the BPF program and its command share: the layout of the maps, the limits, and where on an
 * interface the program sits. The contract of the models is in README.md, their draws are in losses.h.
 */
#ifndef DROPPER_H
#define DROPPER_H

#include <linux/bpf.h>
#include <linux/types.h>

#include "losses.h"

/* The name that distinguishes our programs from others; the kernel keeps 15 characters. */
#define DROPPER_PROGRAM "fecbench_drop"

/* First among the filters of the hook, since a filter before ours could end the classification unseen; but
 * for the clock of a netem link, which must see what we drop. */
#define DROPPER_PRIORITY 2
#define DROPPER_HANDLE 0xfec

/* Verdicts kept unless asked otherwise: 128 KiB, 100 s at 100 Mbps. */
#define DROPPER_RECORDED (1u << 20)

enum dropper_family {
    DROPPER_FAMILY_ANY = 0, /* IPv4 or IPv6 */
    DROPPER_FAMILY_IPV4 = 4,
    DROPPER_FAMILY_IPV6 = 6,
};

/* The section of the one value of the type below, and the name of its map: libbpf freezes what it loads of
 * sections that begin so. */
#define DROPPER_CONFIGURATION ".rodata.config"

struct dropper_configuration {
    struct losses losses;
    __u64 pattern_length; /* packets, or slots */
    __u64 slot_ns;
    __u64 first_slot;
    __u64 cycle_ns; /* of all stays of ge-time */
    __u32 model;    /* enum losses_model */
    __u16 port;     /* host order, source or destination; 0: any */
    __u8 family;    /* enum dropper_family */
    __u8 protocol;  /* IPPROTO_UDP, IPPROTO_TCP; 0: any */
    __u8 pattern_repeats;
    __u8 made_clsact; /* the clsact qdisc of this interface is ours: for detach */
    __u8 reserved[6];
};

/* The one value of the map `state`. Three parts in one word, for they must advance together, packet by
 * packet: whether the Gilbert-Elliott chain is bad before the next packet (bit 0), how many packets were lost
 * in a row before it (where a burst has a maximum; 16 bits), and how many packets have been judged, which is
 * the index of the next one. */
typedef __u64 dropper_state;

#define DROPPER_STATE_BAD 1ull
#define DROPPER_STATE_LOST 2ull           /* one more packet lost in a row */
#define DROPPER_STATE_PACKET (1ull << 17) /* one more packet */
#define DROPPER_STATE_BURST(state) ((state) % DROPPER_STATE_PACKET / DROPPER_STATE_LOST)
#define DROPPER_STATE_PACKETS(state) ((state) / DROPPER_STATE_PACKET)

/* The one value of the map `began`: the time of the clock at which packet 0 came, 0 before. Times of arrival
 * count from then, in ns. */
typedef __u64 dropper_began;

/* The one value of the map `counters`, in packets. */
struct dropper_counters {
    __u64 dropped;
    __u64 other; /* not matched by the filter; state.packets + shorter + other is all that crossed the hook */
    __u64 shorter;   /* matched, but no longer than only_longer_than */
    __u64 gso;       /* judged, though they stand for several packets on the wire */
    __u64 truncated; /* judged, or impossible to match, though shorter than their headers say */
    __u64 fragments; /* IP fragments of the filter's family and protocol */
};

#endif
