/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause OR GPL-2.0-only */
/*
 * The loss injector: a tc classifier that judges each packet that matches its filter, by a seeded loss model.
 * It is compiled once; model, seed and filter come from `configuration`. It never prints.
 * Packets that it lets pass go on to the next filter of the hook (TC_ACT_UNSPEC).
 */
#include <stdbool.h>

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/pkt_cls.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "dropper.h"

#define VLAN_TAGS_MAX 2         /* IEEE 802.1ad: a service tag and a customer tag */
#define EXTENSION_HEADERS_MAX 8 /* RFC 8200, 4.1: at most six precede a transport header */

#define IPV4_FRAGMENT_OFFSET 0x1fff
#define IPV4_MORE_FRAGMENTS 0x2000
#define IPV6_FRAGMENT_OFFSET 0xfff8
#define IPV6_MORE_FRAGMENTS 0x0001

/* Set before loading, and frozen then: the kernel knows the values, and leaves out what other models and
 * filters need, so that it verifies the program much faster. The compiler must not know them, so they are not
 * const. */
struct dropper_configuration configuration SEC(DROPPER_CONFIGURATION);

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, dropper_state);
} state SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct dropper_counters);
} counters SEC(".maps");

/* Bit n % 64 of word n / 64 is the verdict of packet n: 1 is dropped. The command sets both sizes before
 * loading. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, DROPPER_RECORDED / LOSSES_PER_WORD);
    __uint(map_flags, BPF_F_MMAPABLE);
    __type(key, __u32);
    __type(value, __u64);
} verdicts SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __uint(map_flags, BPF_F_MMAPABLE);
    __type(key, __u32);
    __type(value, __u64);
} pattern SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, dropper_began);
} began SEC(".maps");

/* When each packet arrived, of losses that are clocked by time. As many as verdicts are recorded then. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __uint(map_flags, BPF_F_MMAPABLE);
    __type(key, __u32);
    __type(value, __u64);
} arrivals SEC(".maps");

/* When each stay of ge-time ends, in ns since packet 0; the first is a good one. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __uint(map_flags, BPF_F_MMAPABLE);
    __type(key, __u32);
    __type(value, __u64);
} stays SEC(".maps");

/* ---- The filter: which packets are judged ---- */

struct vlan_tag {
    __be16 control;
    __be16 ethertype;
};

struct extension_header {
    __u8 next;
    __u8 length;
    __be16 fragment; /* offset and flags, if it is a fragment header */
};

struct ports {
    __be16 source;
    __be16 destination;
};

struct packet {
    struct __sk_buff *skb;
    __u32 offset; /* of the next header */
    __u32 ip_bytes;
    __u8 protocol;  /* of the transport header */
    bool truncated; /* shorter than its headers say */
    bool fragment;
    bool later_fragment; /* which carries no transport header */
};

/* Reads the next header and steps over it. Works on non-linear packets too. */
static __always_inline bool take(struct packet *packet, void *header, __u32 size) {
    if (bpf_skb_load_bytes(packet->skb, packet->offset, header, size) != 0) {
        packet->truncated = true;
        return false;
    }
    packet->offset += size;
    return true;
}

/* A tag that the kernel took out of the frame (skb->vlan_tci) leaves the inner EtherType in its place. */
static __always_inline bool take_ethernet(struct packet *packet, __be16 *ethertype) {
    struct ethhdr ethernet;
    struct vlan_tag tag;

    if (!take(packet, &ethernet, sizeof(ethernet)))
        return false;
    *ethertype = ethernet.h_proto;
    for (int i = 0; i < VLAN_TAGS_MAX; i++) {
        if (*ethertype != bpf_htons(ETH_P_8021Q) && *ethertype != bpf_htons(ETH_P_8021AD))
            break;
        if (!take(packet, &tag, sizeof(tag)))
            return false;
        *ethertype = tag.ethertype;
    }
    return true;
}

static __always_inline bool take_ipv4(struct packet *packet) {
    __u32 start = packet->offset;
    struct iphdr ip;

    if (!take(packet, &ip, sizeof(ip)) || ip.version != 4 || ip.ihl < 5)
        return false;
    packet->protocol = ip.protocol;
    packet->offset = start + ip.ihl * 4;
    packet->ip_bytes = bpf_ntohs(ip.tot_len);
    packet->truncated = start + packet->ip_bytes > packet->skb->len;
    packet->fragment = ip.frag_off & bpf_htons(IPV4_FRAGMENT_OFFSET | IPV4_MORE_FRAGMENTS);
    packet->later_fragment = ip.frag_off & bpf_htons(IPV4_FRAGMENT_OFFSET);
    return true;
}

/* Steps over the extension headers; false if there are more than we follow. */
static __always_inline bool take_extension_headers(struct packet *packet, __u8 next) {
    for (int i = 0; i <= EXTENSION_HEADERS_MAX; i++) {
        __u32 start = packet->offset;
        struct extension_header extension;

        if (next != IPPROTO_HOPOPTS && next != IPPROTO_ROUTING && next != IPPROTO_DSTOPTS &&
            next != IPPROTO_FRAGMENT && next != IPPROTO_AH) {
            packet->protocol = next;
            return true;
        }
        if (!take(packet, &extension, sizeof(extension)))
            return false;
        if (next == IPPROTO_FRAGMENT) {
            packet->fragment = extension.fragment & bpf_htons(IPV6_FRAGMENT_OFFSET | IPV6_MORE_FRAGMENTS);
            packet->later_fragment = extension.fragment & bpf_htons(IPV6_FRAGMENT_OFFSET);
            packet->offset = start + 8;
        } else if (next == IPPROTO_AH) {
            packet->offset = start + (extension.length + 2) * 4;
        } else {
            packet->offset = start + (extension.length + 1) * 8;
        }
        next = extension.next;
        if (packet->later_fragment) {
            packet->protocol = next;
            return true;
        }
    }
    return false;
}

static __always_inline bool take_ipv6(struct packet *packet) {
    struct ipv6hdr ip;

    if (!take(packet, &ip, sizeof(ip)) || ip.version != 6)
        return false;
    packet->ip_bytes = sizeof(ip) + bpf_ntohs(ip.payload_len);
    packet->truncated = packet->offset + bpf_ntohs(ip.payload_len) > packet->skb->len;
    return take_extension_headers(packet, ip.nexthdr);
}

static __always_inline bool take_ip(struct packet *packet, __u8 family) {
    __be16 ethertype;

    if (!take_ethernet(packet, &ethertype))
        return false;
    if (ethertype == bpf_htons(ETH_P_IP))
        return family != DROPPER_FAMILY_IPV6 && take_ipv4(packet);
    if (ethertype == bpf_htons(ETH_P_IPV6))
        return family != DROPPER_FAMILY_IPV4 && take_ipv6(packet);
    return false;
}

static __always_inline bool has_either_port(struct ports ports, __u16 port) {
    return ports.source == bpf_htons(port) || ports.destination == bpf_htons(port);
}

static __always_inline bool has_port(struct packet *packet, __u16 port) {
    struct ports ports;

    if (packet->protocol != IPPROTO_UDP && packet->protocol != IPPROTO_TCP)
        return false;
    if (packet->later_fragment || !take(packet, &ports, sizeof(ports)))
        return false;
    if (has_either_port(ports, port))
        return true;
    packet->truncated = false;
    return false;
}

/* Any packet, by helper calls. Not inlined, so that those that need none of it are not slowed down by it. */
static __noinline bool matches(struct packet *packet, const struct dropper_configuration *configured) {
    if (!take_ip(packet, configured->family)) {
        packet->fragment = false;
        return false;
    }
    if (configured->protocol && packet->protocol != configured->protocol) {
        packet->truncated = packet->fragment = false;
        return false;
    }
    return !configured->port || has_port(packet, configured->port);
}

/* The headers of nearly every packet. */
struct plain_headers {
    struct ethhdr ethernet;
    struct iphdr ip;
    struct ports ports;
} __attribute__((packed, aligned(2)));

/* The headers of a packet that is whole, IPv4 without options and fragments, and UDP or TCP; NULL for any
 * other, and where the kernel does not have them side by side. */
static __always_inline const struct plain_headers *plain(const struct __sk_buff *skb) {
    const struct plain_headers *headers = (const void *)(long)skb->data;

    if ((const void *)(headers + 1) > (const void *)(long)skb->data_end)
        return NULL;
    if (headers->ethernet.h_proto != bpf_htons(ETH_P_IP) || headers->ip.version != 4 ||
        headers->ip.ihl != 5 ||
        headers->ip.frag_off & bpf_htons(IPV4_FRAGMENT_OFFSET | IPV4_MORE_FRAGMENTS) ||
        sizeof(headers->ethernet) + bpf_ntohs(headers->ip.tot_len) > skb->len ||
        (headers->ip.protocol != IPPROTO_UDP && headers->ip.protocol != IPPROTO_TCP))
        return NULL;
    return headers;
}

static __always_inline bool matches_plain(const struct plain_headers *headers,
                                          const struct dropper_configuration *configured) {
    return configured->family != DROPPER_FAMILY_IPV6 &&
           (!configured->protocol || headers->ip.protocol == configured->protocol) &&
           (!configured->port || has_either_port(headers->ports, configured->port));
}

/* ---- The models: what happens to packet n ---- */

struct turn {
    __u64 n;
    bool bad;    /* the state that decides on this packet */
    __u64 burst; /* packets lost in a row before it, where a burst has a maximum */
};

/* How often a CPU tries to advance the chain, in the way of which others may come: each time, another CPU has
 * had its turn. If all are in vain the chain stays where it is, and the verdicts differ from the oracle's,
 * which is noticed. */
#define TRIES_MAX 128

static __always_inline struct turn turn_of(dropper_state before) {
    return (struct turn){.n = DROPPER_STATE_PACKETS(before),
                         .bad = before & DROPPER_STATE_BAD,
                         .burst = DROPPER_STATE_BURST(before)};
}

static __always_inline dropper_state after_packet(dropper_state before) {
    struct turn turn = turn_of(before);
    __u64 burst = 0;

    if (configuration.losses.burst_max &&
        losses_lose_behind(&configuration.losses, turn.n, turn.bad, turn.burst))
        burst = turn.burst + 1;
    return (turn.n + 1) * DROPPER_STATE_PACKET + burst * DROPPER_STATE_LOST +
           losses_next(&configuration.losses, turn.n, turn.bad);
}

/* The same for tries after the first. Neither inlined nor static, so the kernel verifies it once, and not for
 * each try. */
__noinline dropper_state after_packet_again(dropper_state before) {
    return after_packet(before);
}

static __always_inline struct turn next_turn(dropper_state *advancing) {
    if (configuration.model == LOSSES_MODEL_GILBERT_ELLIOTT || configuration.losses.burst_max) {
        dropper_state before = *(volatile dropper_state *)advancing, after = after_packet(before);

        for (int i = 0; i < TRIES_MAX; i++) {
            dropper_state found = __sync_val_compare_and_swap(advancing, before, after);

            if (found == before)
                return turn_of(before);
            before = found;
            after = after_packet_again(before);
        }
    }
    return turn_of(__sync_fetch_and_add(advancing, DROPPER_STATE_PACKET));
}

static __always_inline bool bit(void *map, __u64 n) {
    __u32 index = n / LOSSES_PER_WORD;
    __u64 *word = bpf_map_lookup_elem(map, &index);

    return word && (*word >> (n % LOSSES_PER_WORD)) & 1;
}

/* The time since packet 0. If another CPU judged a packet a little earlier, and it took a later number, its
 * time is 0 as well. */
static __always_inline __u64 arrival_of(__u64 n) {
    __u32 only = 0, index = n;
    dropper_began *first = bpf_map_lookup_elem(&began, &only);
    __u64 now = bpf_ktime_get_ns(), start, since, *arrival;

    if (!first) /* never: for the verifier */
        return 0;
    start = __sync_val_compare_and_swap(first, 0, now);
    since = start && now > start ? now - start : 0;
    arrival = n < LOSSES_PACKETS_MAX ? bpf_map_lookup_elem(&arrivals, &index) : NULL;
    if (arrival)
        *arrival = since;
    return since;
}

/* How many stays have ended at a time of the cycle: by bisection, for a sender may have been silent for many.
 */
static __always_inline __u32 stays_before(__u64 time_ns) {
    /* 0, and the verifier does not know it: of keys that it knows, it would walk every way of the bisection.
     */
    __u32 ended = time_ns >> 63;

    for (__u32 step = LOSSES_STAYS / 2; step; step /= 2) {
        __u32 index = ended + step - 1;
        __u64 *end = bpf_map_lookup_elem(&stays, &index);

        if (end && *end <= time_ns)
            ended += step;
    }
    return ended;
}

static __always_inline bool lost_in_time(__u64 n, const struct dropper_configuration *configured) {
    __u64 since = arrival_of(n), place;

    if (configured->model == LOSSES_MODEL_GE_TIME) {
        bool bad = configured->cycle_ns && stays_before(since % configured->cycle_ns) % 2;

        return losses_lose(&configured->losses, n, bad);
    }
    place = configured->slot_ns ? since / configured->slot_ns + configured->first_slot : 0;
    place = losses_place(configured->pattern_length, configured->pattern_repeats, place);
    return place < configured->pattern_length && bit(&pattern, place);
}

static __always_inline bool lost(struct turn turn, const struct dropper_configuration *configured) {
    __u64 place;

    if (losses_is_clocked(configured->model))
        return lost_in_time(turn.n, configured);
    if (configured->model != LOSSES_MODEL_PATTERN)
        return losses_lose_behind(&configured->losses, turn.n, turn.bad, turn.burst);
    place = losses_place(configured->pattern_length, configured->pattern_repeats, turn.n);
    return place < configured->pattern_length && bit(&pattern, place);
}

static __always_inline void record(__u64 n) {
    __u32 index = n / LOSSES_PER_WORD;
    __u64 *word;

    if (n >= LOSSES_PACKETS_MAX) /* before index can wrap */
        return;
    word = bpf_map_lookup_elem(&verdicts, &index);
    if (word)
        __sync_fetch_and_or(word, 1ull << (n % LOSSES_PER_WORD));
}

static __always_inline void count(__u64 *counter) {
    __sync_fetch_and_add(counter, 1);
}

/* gso_segs is 0 if the maker of the packet left it to be computed. */
static __always_inline bool stands_for_several(const struct __sk_buff *skb) {
    return skb->gso_size && skb->gso_segs != 1;
}

SEC("tc")
int fecbench_drop(struct __sk_buff *skb) {
    __u32 only = 0;
    const struct dropper_configuration *configured = &configuration;
    struct dropper_counters *counted = bpf_map_lookup_elem(&counters, &only);
    dropper_state *advancing = bpf_map_lookup_elem(&state, &only);
    const struct plain_headers *headers = plain(skb);
    struct turn turn;
    __u32 ip_bytes;
    bool matched;

    if (!counted || !advancing) /* never: for the verifier */
        return TC_ACT_UNSPEC;

    if (headers) {
        matched = matches_plain(headers, configured);
        ip_bytes = bpf_ntohs(headers->ip.tot_len);
    } else {
        struct packet packet = {.skb = skb};

        matched = matches(&packet, configured);
        ip_bytes = packet.ip_bytes;
        if (packet.truncated)
            count(&counted->truncated);
        if (packet.fragment)
            count(&counted->fragments);
    }
    if (!matched) {
        count(&counted->other);
        return TC_ACT_UNSPEC;
    }
    if (stands_for_several(skb))
        count(&counted->gso);
    if (configured->losses.only_longer_than && !losses_counts(&configured->losses, ip_bytes)) {
        count(&counted->shorter);
        return TC_ACT_UNSPEC;
    }

    turn = next_turn(advancing);
    if (!lost(turn, configured))
        return TC_ACT_UNSPEC;
    record(turn.n);
    count(&counted->dropped);
    return TC_ACT_SHOT;
}

char _license[] SEC("license") = "Dual BSD/GPL";
