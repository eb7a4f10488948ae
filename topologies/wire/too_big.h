// The answer of a link whose MTU a packet exceeds: "fragmentation needed" of IPv4 (RFC 792, RFC 1191, section
// 4), "packet too big" of IPv6 (RFC 4443, section 3.2). It goes back to the sender from the packet's
// destination, as that of Linux' tunnels does, since a link has no address of its own.
//
// There is none about what has no IP, about IPv4 that may be fragmented, about later fragments, and about any
// protocol but UDP, TCP and echo: never about an error (RFC 1122, section 3.2.2).
#pragma once

#include <stdbool.h>
#include <string.h>

#include "headers.h"

enum { ICMP_BYTES = 8, PROTOCOL_ICMP = 1, PROTOCOL_ICMPV6 = 58, MOST_ICMPV4 = 576, MOST_ICMPV6 = 1280 };

static inline void put_16(uint8_t *at, uint32_t value) {
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
}

// The sum of RFC 1071 of an even number of bytes, or of more that ends with an odd one, not folded yet.
static inline uint32_t sum_of_bytes(const uint8_t *bytes, uint32_t count) {
    uint32_t sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += i % 2 ? bytes[i] : (uint32_t)bytes[i] << 8;
    return sum;
}

static inline uint32_t checksum_of(uint32_t sum) {
    sum = (sum & 0xffff) + (sum >> 16);
    return ~(sum + (sum >> 16)) & 0xffff;
}

// How much of the packet fits into an answer of so many bytes at the most, in a frame of this capacity.
static inline uint32_t room_of(uint32_t most, uint32_t capacity, uint32_t header) {
    uint32_t of_frame = capacity - ETHERNET_BYTES;
    return (of_frame < most ? of_frame : most) - header - ICMP_BYTES;
}

static inline bool is_told_of(unsigned protocol, const uint8_t *transport) {
    bool is_echo = (protocol == PROTOCOL_ICMP && (transport[0] == 8 || transport[0] == 0)) ||
                   (protocol == PROTOCOL_ICMPV6 && (transport[0] == 128 || transport[0] == 129));
    return protocol == PROTOCOL_UDP || protocol == PROTOCOL_TCP || is_echo;
}

static inline void answer_ipv4(const struct frame *frame, uint32_t mtu_bytes, struct frame *answer,
                               uint32_t capacity) {
    const uint8_t *own = frame->bytes + ETHERNET_BYTES;
    uint8_t *ip = answer->bytes + ETHERNET_BYTES, *icmp = ip + IPV4_BYTES;
    uint32_t quoted = frame->length - ETHERNET_BYTES, room = room_of(MOST_ICMPV4, capacity, IPV4_BYTES);
    quoted = quoted < room ? quoted : room;
    memset(ip, 0, IPV4_BYTES + ICMP_BYTES);
    ip[0] = 0x45;
    put_16(ip + 2, IPV4_BYTES + ICMP_BYTES + quoted);
    ip[8] = 64;
    ip[9] = PROTOCOL_ICMP;
    memcpy(ip + 12, own + 16, 4);
    memcpy(ip + 16, own + 12, 4);
    put_16(ip + 10, checksum_of(sum_of_bytes(ip, IPV4_BYTES)));
    icmp[0] = 3; // destination unreachable
    icmp[1] = 4; // fragmentation needed
    put_16(icmp + 6, mtu_bytes);
    memcpy(icmp + ICMP_BYTES, own, quoted);
    put_16(icmp + 2, checksum_of(sum_of_bytes(icmp, ICMP_BYTES + quoted)));
    answer->length = ETHERNET_BYTES + IPV4_BYTES + ICMP_BYTES + quoted;
}

static inline void answer_ipv6(const struct frame *frame, uint32_t mtu_bytes, struct frame *answer,
                               uint32_t capacity) {
    const uint8_t *own = frame->bytes + ETHERNET_BYTES;
    uint8_t *ip = answer->bytes + ETHERNET_BYTES, *icmp = ip + IPV6_BYTES;
    uint32_t quoted = frame->length - ETHERNET_BYTES, room = room_of(MOST_ICMPV6, capacity, IPV6_BYTES);
    quoted = quoted < room ? quoted : room;
    memset(ip, 0, IPV6_BYTES + ICMP_BYTES);
    ip[0] = 0x60;
    put_16(ip + 4, ICMP_BYTES + quoted);
    ip[6] = PROTOCOL_ICMPV6;
    ip[7] = 64;
    memcpy(ip + 8, own + 24, 16);
    memcpy(ip + 24, own + 8, 16);
    icmp[0] = 2; // packet too big
    put_16(icmp + 6, mtu_bytes);
    memcpy(icmp + ICMP_BYTES, own, quoted);
    uint32_t sum = sum_of_bytes(ip + 8, 32) + ICMP_BYTES + quoted + PROTOCOL_ICMPV6;
    put_16(icmp + 2, checksum_of(sum + sum_of_bytes(icmp, ICMP_BYTES + quoted)));
    answer->length = ETHERNET_BYTES + IPV6_BYTES + ICMP_BYTES + quoted;
}

// Writes the answer about a frame, of no more bytes than another one may have. False: none is due.
static inline bool too_big(const struct frame *frame, uint32_t mtu_bytes, struct frame *answer,
                           uint32_t capacity) {
    const uint8_t *own = frame->bytes + ETHERNET_BYTES;
    unsigned version = ip_version_of(frame);
    if (!version)
        return false;
    unsigned protocol = version == 4 ? own[9] : own[6],
             header = version == 4 ? (own[0] & 15u) * 4 : IPV6_BYTES;
    bool may_be_fragmented = version == 4 && !(own[6] & 0x40);
    bool is_later = version == 4 && ((own[6] & 0x1f) || own[7]);
    bool is_whole = frame->length > ETHERNET_BYTES + header;
    if (may_be_fragmented || is_later || !is_whole || !is_told_of(protocol, own + header))
        return false;
    memcpy(answer->bytes, frame->bytes + 6, 6);
    memcpy(answer->bytes + 6, frame->bytes, 6);
    memcpy(answer->bytes + 12, frame->bytes + 12, 2);
    if (version == 4)
        answer_ipv4(frame, mtu_bytes, answer, capacity);
    else
        answer_ipv6(frame, mtu_bytes, answer, capacity);
    return true;
}
