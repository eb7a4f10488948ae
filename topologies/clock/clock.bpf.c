/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause OR GPL-2.0-only */
/*
 * The clock of a link: tc classifiers that note when each frame enters it and when it leaves. They let every
 * frame go on to the next filter.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <linux/types.h>

#include <bpf/bpf_helpers.h>

#include "clock.h"

#define FRAMES_MAX (1 << 17) /* in the link; those that its queue dropped make room */
#define TOLD_BYTES (1 << 22) /* of frames that the command has not read yet */
#define WORDS 16             /* of a frame tell it from others: an encrypted payload differs in each packet */
#define TWINS_MAX 64         /* frames of the same bytes in the link at once */

/* By what tells a frame from others, when it entered. */
struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH); /* with memory of its own, which does not run out in a burst */
    __uint(max_entries, FRAMES_MAX);
    __type(key, __u64);
    __type(value, __u64);
} entered SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, TOLD_BYTES);
} left SEC(".maps");

/* Frames that could not be told of. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u64);
} untold SEC(".maps");

/* On its way the kernel completes the checksum of UDP and TCP, where it had left that to the interface. */
static __always_inline void leave_checksum_out(__u8 *bytes) {
    const int protocol = 14 + 9, udp = 14 + 20 + 6, tcp = 14 + 20 + 16;

    if (bytes[protocol] == 17)
        bytes[udp] = bytes[udp + 1] = 0;
    else if (bytes[protocol] == 6)
        bytes[tcp] = bytes[tcp + 1] = 0;
}

static __always_inline __u64 key_of(struct __sk_buff *frame, __u32 direction) {
    __u64 words[WORDS] = {}, key = ((__u64)direction << 32) + frame->len;

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

static __always_inline int enter(struct __sk_buff *frame, __u32 direction) {
    __u64 now = bpf_ktime_get_ns(), key = key_of(frame, direction);

    for (int i = 0; i < TWINS_MAX; i++, key++)
        if (bpf_map_update_elem(&entered, &key, &now, BPF_NOEXIST) != -17 /* EEXIST */)
            break;
    return TC_ACT_UNSPEC;
}

static __always_inline int leave(struct __sk_buff *frame, __u32 direction) {
    struct clock_frame told = {.left_ns = bpf_ktime_get_ns(), .bytes = frame->len, .direction = direction};
    __u64 key = key_of(frame, direction), *since;
    __u32 only = 0;

    for (int i = 0; i < TWINS_MAX; i++, key++) {
        since = bpf_map_lookup_elem(&entered, &key);
        if (since) {
            told.entered_ns = *since;
            bpf_map_delete_elem(&entered, &key);
            break;
        }
    }
    if (bpf_ringbuf_output(&left, &told, sizeof(told), BPF_RB_NO_WAKEUP) != 0) {
        __u64 *count = bpf_map_lookup_elem(&untold, &only);

        if (count)
            __sync_fetch_and_add(count, 1);
    }
    return TC_ACT_UNSPEC;
}

SEC("tc") int enter_up(struct __sk_buff *frame) {
    return enter(frame, CLOCK_UP);
}

SEC("tc") int enter_down(struct __sk_buff *frame) {
    return enter(frame, CLOCK_DOWN);
}

SEC("tc") int leave_up(struct __sk_buff *frame) {
    return leave(frame, CLOCK_UP);
}

SEC("tc") int leave_down(struct __sk_buff *frame) {
    return leave(frame, CLOCK_DOWN);
}

char _license[] SEC("license") = "Dual BSD/GPL";
