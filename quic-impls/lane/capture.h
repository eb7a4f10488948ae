// A capture of what one host of a simulator sends and receives, as a pcapng file: each datagram is an
// Ethernet frame with headers of IP and UDP and a virtual time of its own, in nanoseconds.
//
// Packets of a host are written when it sends them, also when the link drops them; packets to it, when
// they reach it. There is no fragmentation, and no ECN; over IPv4, a UDP checksum of 0 says that there is
// none.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// The longest payload of a datagram over IPv4.
#define CAPTURE_PAYLOAD_MAX 65507

// In the byte order of the machine: 10.0.1.2 is 0x0a000102. An address of IPv6 has its bytes in their order.
struct capture_address {
    uint32_t ipv4;
    uint16_t port;
    bool is_ipv6;
    uint8_t ipv6[16];
};

struct capture;

// Makes the file, or empties one that is there. A packet at time 0 gets epoch_ns, nanoseconds since
// 1970-01-01 UTC, as its time. NULL, with errno, when it cannot be made.
struct capture *capture_open(const char *path, uint64_t epoch_ns);

// A datagram of at most CAPTURE_PAYLOAD_MAX bytes that was sent or received at at_ns. An error is told by
// capture_close.
void capture_packet(struct capture *capture, uint64_t at_ns, struct capture_address from,
                    struct capture_address to, const uint8_t *payload, uint32_t length);

// 0, or the errno of the first thing that went wrong: then the file is not whole.
int capture_close(struct capture *capture);
