#include "capture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The format: IETF draft-ietf-opsawg-pcapng. Integers of blocks are in the byte order of the machine, which
// the first block tells; those of the frame in that of the network.
enum {
    SECTION_HEADER_BLOCK = 0x0a0d0d0a,
    INTERFACE_BLOCK = 1,
    PACKET_BLOCK = 6,
    BYTE_ORDER_MAGIC = 0x1a2b3c4d,
    LINKTYPE_ETHERNET = 1,
    OPTION_TSRESOL = 9,
    NANOSECONDS = 9, // as a power of ten
};

enum { ETHERNET_SIZE = 14, IPV4_SIZE = 20, IPV6_SIZE = 40, UDP_SIZE = 8 };
enum { LONGEST_HEADERS = ETHERNET_SIZE + IPV6_SIZE + UDP_SIZE };
enum {
    ETHERTYPE_IPV4 = 0x0800,
    ETHERTYPE_IPV6 = 0x86dd,
    DONT_FRAGMENT = 0x4000,
    TTL = 64,
    PROTOCOL_UDP = 17
};

struct capture {
    FILE *file;
    uint64_t epoch_ns;
    int error; // the first, or 0
};

struct section_header {
    uint32_t type, size, byte_order;
    uint16_t major, minor;
    uint64_t section_size; // all ones: not told
    uint32_t size_again;
} __attribute__((packed));

struct interface_description {
    uint32_t type, size;
    uint16_t link_type, reserved;
    uint32_t longest; // 0: no limit
    uint16_t option, option_size;
    uint8_t resolution, padding[3];
    uint32_t end_of_options;
    uint32_t size_again;
} __attribute__((packed));

// Then the frame, padding to four bytes, and the size again.
struct packet_header {
    uint32_t type, size, interface, time_high, time_low, captured, original;
};

static void put(struct capture *capture, const void *bytes, size_t size) {
    if (capture->error || fwrite(bytes, 1, size, capture->file) == size)
        return;
    capture->error = errno ? errno : EIO;
}

static void put_file_header(struct capture *capture) {
    struct section_header section = {
        .type = SECTION_HEADER_BLOCK,
        .size = sizeof section,
        .byte_order = BYTE_ORDER_MAGIC,
        .major = 1,
        .section_size = UINT64_MAX,
        .size_again = sizeof section,
    };
    struct interface_description interface = {
        .type = INTERFACE_BLOCK,
        .size = sizeof interface,
        .link_type = LINKTYPE_ETHERNET,
        .option = OPTION_TSRESOL,
        .option_size = sizeof interface.resolution,
        .resolution = NANOSECONDS,
        .size_again = sizeof interface,
    };
    put(capture, &section, sizeof section);
    put(capture, &interface, sizeof interface);
}

struct capture *capture_open(const char *path, uint64_t epoch_ns) {
    struct capture *capture = calloc(1, sizeof *capture);
    if (!capture)
        return NULL;
    capture->epoch_ns = epoch_ns;
    capture->file = fopen(path, "wbe");
    if (!capture->file) {
        int error = errno;
        free(capture);
        errno = error;
        return NULL;
    }
    put_file_header(capture);
    return capture;
}

static uint8_t *write_16(uint8_t *at, uint32_t value) {
    *at++ = value >> 8;
    *at++ = value;
    return at;
}

static uint8_t *write_32(uint8_t *at, uint32_t value) {
    return write_16(write_16(at, value >> 16), value);
}

// A locally administered one that has the host's address in it. fd00:fec:a00:1::2 has that of 10.0.1.2.
static uint8_t *write_mac(uint8_t *at, const struct capture_address *of) {
    const uint8_t *ip = of->ipv6;
    at = write_16(at, 0x0200);
    return of->is_ipv6 ? write_16(write_16(at, ip[4] << 8 | ip[5]), ip[7] << 8 | ip[15])
                       : write_32(at, of->ipv4);
}

// The sum of RFC 1071, not folded yet.
static uint32_t sum_of(const uint8_t *bytes, uint32_t size) {
    uint32_t sum = 0;
    for (uint32_t i = 0; i < size; i++)
        sum += i % 2 ? bytes[i] : bytes[i] << 8;
    return sum;
}

static uint32_t checksum(uint32_t sum) {
    sum = (sum & 0xffff) + (sum >> 16);
    return ~(sum + (sum >> 16)) & 0xffff;
}

static uint8_t *write_udp(uint8_t *at, const struct capture_address *from, const struct capture_address *to,
                          uint32_t length) {
    at = write_16(write_16(at, from->port), to->port);
    at = write_16(at, UDP_SIZE + length);
    return write_16(at, 0); // no checksum, until there is one
}

static uint8_t *write_ipv4(uint8_t *ip, const struct capture_address *from, const struct capture_address *to,
                           uint32_t length) {
    uint8_t *at = write_16(ip, 0x4500); // version 4, a header of five words, no service asked for
    at = write_16(at, IPV4_SIZE + UDP_SIZE + length);
    at = write_16(at, 0); // identification: none is needed, since there are no fragments (RFC 6864)
    at = write_16(at, DONT_FRAGMENT);
    at = write_16(at, TTL << 8 | PROTOCOL_UDP);
    uint8_t *ip_checksum = at;
    at = write_16(at, 0);
    at = write_32(write_32(at, from->ipv4), to->ipv4);
    write_16(ip_checksum, checksum(sum_of(ip, IPV4_SIZE)));
    return write_udp(at, from, to, length);
}

// UDP has to have a checksum here (RFC 8200, section 8.1), and 0 is written as its complement.
static uint8_t *write_ipv6(uint8_t *ip, const struct capture_address *from, const struct capture_address *to,
                           const uint8_t *payload, uint32_t length) {
    uint8_t *at = write_32(ip, 0x60000000); // version 6, no service asked for, no flow
    at = write_16(at, UDP_SIZE + length);
    at = write_16(at, PROTOCOL_UDP << 8 | TTL);
    memcpy(at, from->ipv6, sizeof from->ipv6);
    memcpy(at + sizeof from->ipv6, to->ipv6, sizeof to->ipv6);
    uint8_t *udp = at + sizeof from->ipv6 + sizeof to->ipv6;
    uint8_t *end = write_udp(udp, from, to, length);
    uint32_t sum =
        sum_of(at, 32) + PROTOCOL_UDP + UDP_SIZE + length + sum_of(udp, UDP_SIZE) + sum_of(payload, length);
    uint32_t of_udp = checksum(sum);
    write_16(udp + 6, of_udp ? of_udp : 0xffff);
    return end;
}

// How long the headers are.
static uint32_t write_headers(uint8_t headers[LONGEST_HEADERS], const struct capture_address *from,
                              const struct capture_address *to, const uint8_t *payload, uint32_t length) {
    uint8_t *at = write_mac(write_mac(headers, to), from);
    uint8_t *ip = write_16(at, from->is_ipv6 ? ETHERTYPE_IPV6 : ETHERTYPE_IPV4);
    uint8_t *end =
        from->is_ipv6 ? write_ipv6(ip, from, to, payload, length) : write_ipv4(ip, from, to, length);
    return (uint32_t)(end - headers);
}

void capture_packet(struct capture *capture, uint64_t at_ns, struct capture_address from,
                    struct capture_address to, const uint8_t *payload, uint32_t length) {
    static const uint8_t zeros[4];
    if (length > CAPTURE_PAYLOAD_MAX) {
        capture->error = capture->error ? capture->error : EMSGSIZE;
        return;
    }
    uint8_t headers[LONGEST_HEADERS];
    uint32_t size = write_headers(headers, &from, &to, payload, length);
    uint64_t time_ns = capture->epoch_ns + at_ns;
    uint32_t frame = size + length;
    uint32_t padding = -frame % 4;
    struct packet_header packet = {
        .type = PACKET_BLOCK,
        .size = sizeof packet + frame + padding + sizeof packet.size,
        .time_high = time_ns >> 32,
        .time_low = (uint32_t)time_ns,
        .captured = frame,
        .original = frame,
    };
    put(capture, &packet, sizeof packet);
    put(capture, headers, size);
    put(capture, payload, length);
    put(capture, zeros, padding);
    put(capture, &packet.size, sizeof packet.size);
}

int capture_close(struct capture *capture) {
    if (fclose(capture->file) != 0 && !capture->error)
        capture->error = errno;
    int error = capture->error;
    free(capture);
    return error;
}
