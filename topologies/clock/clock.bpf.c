/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause OR GPL-2.0-only */
/*
 * The clock of a link: tc classifiers that report each frame when it enters the link and when it leaves it.
 * They let every frame go on to the next filter.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <linux/types.h>

#include <bpf/bpf_helpers.h>

#include "clock.h"

#define TOLD_BYTES (1 << 23) /* of sightings that the command has not read yet, two of each frame */
#define WORDS 16 /* of a frame distinguish it from others: an encrypted payload differs in each packet */

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, TOLD_BYTES);
} sightings SEC(".maps");

/* Sightings that found no room. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u64);
} untold SEC(".maps");

/* On its way the kernel completes the checksum of UDP and TCP, where it had left that to the interface. */
static __always_inline void leave_checksum_out(__u8 *bytes) {
    const int ip = 14, udp = 6, tcp = 16; /* places of the headers' checksums */
    const int protocol_4 = ip + 9, transport_4 = ip + 20, protocol_6 = ip + 6, transport_6 = ip + 40;

    if (bytes[ip] >> 4 == 6) {
        if (bytes[protocol_6] == 17)
            bytes[transport_6 + udp] = bytes[transport_6 + udp + 1] = 0;
        else if (bytes[protocol_6] == 6)
            bytes[transport_6 + tcp] = bytes[transport_6 + tcp + 1] = 0;
    } else if (bytes[protocol_4] == 17) {
        bytes[transport_4 + udp] = bytes[transport_4 + udp + 1] = 0;
    } else if (bytes[protocol_4] == 6) {
        bytes[transport_4 + tcp] = bytes[transport_4 + tcp + 1] = 0;
    }
}

static __always_inline __u64 key_of(struct __sk_buff *frame) {
    __u64 words[WORDS] = {}, key = frame->len;

    /* Constant lengths, since verifiers of old kernels follow no others. */
    if (frame->len >= sizeof(words))
        bpf_skb_load_bytes(frame, 0, words, sizeof(words));
    else if (frame->len >= sizeof(words) / 2)
        bpf_skb_load_bytes(frame, 0, words, sizeof(words) / 2);
    else if (frame->len >= 54) /* headers of TCP */
        bpf_skb_load_bytes(frame, 0, words, 54);
    else if (frame->len >= 42) /* headers of UDP */
        bpf_skb_load_bytes(frame, 0, words, 42);
    leave_checksum_out((__u8 *)words);
    for (int i = 0; i < WORDS; i++) {
        key = (key ^ words[i]) * 0x9e3779b97f4a7c15;
        key ^= key >> 29;
    }
    return key;
}

static __always_inline int tell(struct __sk_buff *frame, __u16 direction, __u16 event) {
    struct clock_sighting sighting = {
        .at_ns = bpf_ktime_get_ns(),
        .key = key_of(frame),
        .bytes = frame->len,
        .direction = direction,
        .event = event,
    };
    __u32 only = 0;

    if (bpf_ringbuf_output(&sightings, &sighting, sizeof(sighting), BPF_RB_NO_WAKEUP) != 0) {
        __u64 *count = bpf_map_lookup_elem(&untold, &only);

        if (count)
            __sync_fetch_and_add(count, 1);
    }
    return TC_ACT_UNSPEC;
}

SEC("tc") int enter_up(struct __sk_buff *frame) {
    return tell(frame, CLOCK_UP, CLOCK_ENTERED);
}

SEC("tc") int enter_down(struct __sk_buff *frame) {
    return tell(frame, CLOCK_DOWN, CLOCK_ENTERED);
}

SEC("tc") int leave_up(struct __sk_buff *frame) {
    return tell(frame, CLOCK_UP, CLOCK_LEFT);
}

SEC("tc") int leave_down(struct __sk_buff *frame) {
    return tell(frame, CLOCK_DOWN, CLOCK_LEFT);
}

char _license[] SEC("license") = "Dual BSD/GPL";
