// The headers of a frame that a link reads or changes: its ECN, and which bit of a corrupted frame flips.
#pragma once

#include <stdint.h>

#include "frame_pool.h"

enum { ETHERNET_BYTES = 14, IPV4_BYTES = 20, IPV6_BYTES = 40, PROTOCOL_TCP = 6, PROTOCOL_UDP = 17 };

static inline unsigned ethertype_of(const struct frame *frame) {
    return frame->length < ETHERNET_BYTES ? 0 : (unsigned)frame->bytes[12] << 8 | frame->bytes[13];
}

// IPv4 and IPv6 without extension headers; 0: neither.
static inline unsigned ip_version_of(const struct frame *frame) {
    if (ethertype_of(frame) == 0x0800 && frame->length >= ETHERNET_BYTES + IPV4_BYTES)
        return 4;
    return ethertype_of(frame) == 0x86dd && frame->length >= ETHERNET_BYTES + IPV6_BYTES ? 6 : 0;
}

static inline enum ecn ecn_of(const struct frame *frame) {
    switch (ip_version_of(frame)) {
    case 4:
        return frame->bytes[ETHERNET_BYTES + 1] & 3;
    case 6: // the traffic class lies across two bytes
        return frame->bytes[ETHERNET_BYTES + 1] >> 4 & 3;
    default:
        return ECN_NOT_CAPABLE;
    }
}

// The next bytes of what a flow is known by, in a hash (FNV-1a).
static inline uint32_t with_bytes(uint32_t hash, const uint8_t *bytes, unsigned count) {
    for (unsigned i = 0; i < count; i++)
        hash = (hash ^ bytes[i]) * 16777619u;
    return hash;
}

// A hash of addresses, protocol and ports; the same for all frames that are not IP. Fragments behind the
// first have no ports, and so no fragment's count.
static inline uint32_t flow_of(const struct frame *frame) {
    const uint8_t *ip = frame->bytes + ETHERNET_BYTES;
    unsigned version = ip_version_of(frame);
    if (!version)
        return 0;
    unsigned protocol = version == 4 ? ip[9] : ip[6], header = version == 4 ? (ip[0] & 15u) * 4 : IPV6_BYTES;
    bool is_fragment = version == 4 && ((ip[6] & 0x3f) || ip[7]);
    bool has_ports = (protocol == PROTOCOL_UDP || protocol == PROTOCOL_TCP) && !is_fragment &&
                     frame->length >= ETHERNET_BYTES + header + 4;
    uint32_t hash = (2166136261u ^ protocol) * 16777619u;
    hash = version == 4 ? with_bytes(hash, ip + 12, 8) : with_bytes(hash, ip + 8, 32);
    return has_ports ? with_bytes(hash, ip + header, 4) : hash;
}

// Sets CE; in IPv4, with the checksum that belongs to it (RFC 1624, equation 3). Another time changes
// nothing.
static inline void write_ce(struct frame *frame) {
    uint8_t *ip = frame->bytes + ETHERNET_BYTES;
    if (ip_version_of(frame) == 6)
        ip[1] |= ECN_CE << 4;
    if (ip_version_of(frame) != 4)
        return;
    uint32_t before = (uint32_t)ip[0] << 8 | ip[1];
    ip[1] |= ECN_CE;
    uint32_t after = (uint32_t)ip[0] << 8 | ip[1];
    uint32_t sum = (~((uint32_t)ip[10] << 8 | ip[11]) & 0xffff) + (~before & 0xffff) + after;
    sum = (sum & 0xffff) + (sum >> 16);
    sum = ~((sum & 0xffff) + (sum >> 16));
    ip[10] = (uint8_t)(sum >> 8);
    ip[11] = (uint8_t)sum;
}

// The first byte that may be corrupted. It is one that the checksum of UDP or TCP covers, but for what says
// where the datagram goes and how long it is: so the receiver drops the frame, and nobody before it.
static inline uint32_t corruptible_from(const struct frame *frame) {
    unsigned version = ip_version_of(frame);
    if (!version)
        return ETHERNET_BYTES;
    uint32_t protocol = version == 4 ? frame->bytes[ETHERNET_BYTES + 9] : frame->bytes[ETHERNET_BYTES + 6];
    uint32_t header = version == 4 ? (frame->bytes[ETHERNET_BYTES] & 15u) * 4 : IPV6_BYTES;
    uint32_t transport = ETHERNET_BYTES + header;
    if (protocol == PROTOCOL_UDP) // its checksum where it has no payload
        return transport + 8 < frame->length ? transport + 8 : transport + 6;
    return protocol == PROTOCOL_TCP ? transport + 16 : transport; // from its checksum on
}

// A bit of a frame flips, by a draw of 32 bits.
static inline void corrupt(struct frame *frame, uint64_t draw) {
    uint32_t from = corruptible_from(frame);
    if (from >= frame->length)
        from = frame->length > ETHERNET_BYTES ? ETHERNET_BYTES : 0;
    uint64_t bit = draw * (8ull * (frame->length - from)) >> 32;
    frame->bytes[from + bit / 8] ^= (uint8_t)(1u << bit % 8);
}
