// Runs frames through one direction of the link, without clock, system calls or packets: what an effect
// costs. Arguments: the text of a direction, and how many frames. Prints the nanoseconds of a frame.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "../topologies/wire/too_big.h"
#include "../topologies/wire/written.h"

enum { FRAME_BYTES = 1242, FLOWS = 8 };

static uint64_t cpu_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void take_out(struct direction *direction, struct frame_pool *pool, uint64_t time_ns) {
    for (struct frame *frame; (frame = direction_exit(direction, time_ns));)
        frame_pool_return(pool, frame);
    for (struct frame *frame; (frame = direction_dropped(direction));)
        frame_pool_return(pool, frame);
}

// A frame of IPv4 and UDP that must not be fragmented.
static void write_headers(struct frame *frame) {
    memset(frame->bytes, 0, ETHERNET_BYTES + IPV4_BYTES + 8);
    frame->bytes[12] = 8;
    uint8_t *ip = frame->bytes + ETHERNET_BYTES;
    ip[0] = 0x45;
    ip[6] = 0x40;
    ip[9] = PROTOCOL_UDP;
}

// Does what the wire does with such a frame, except for the writing of the answer.
static void answer(const struct direction *direction, struct frame_pool *pool, struct frame *frame) {
    write_headers(frame);
    struct frame *told = frame_pool_take(pool);
    if (!told || !too_big(frame, (uint32_t)direction->settings.mtu_bytes, told, FRAME_BYTES))
        exit(1);
    frame_pool_return(pool, told);
}

int main(int argc, char **argv) {
    static struct direction direction;
    struct frame_pool pool;
    struct written written;
    if (argc != 3)
        return 2;
    uint64_t frames = strtoull(argv[2], NULL, 10);
    written_begin(&written);
    if (!written_read(&written, argv[1])) {
        fprintf(stderr, "%s\n", written.refusal);
        return 2;
    }
    written.settings.max_frame_size = 1514;
    direction_init(&direction, &written.settings);
    frame_pool_init(&pool, FRAME_BYTES);
    // Bursts of 100 frames at 1.25 times the rate, then a pause, so that a queue has work and does not grow.
    uint64_t gap_ns = FRAME_BYTES * 8ull * 1000000000u * 4 / 5 / written.settings.rate_bps, time_ns = 0;
    uint64_t begun_ns = cpu_ns();
    for (uint64_t n = 0; n < frames; n++) {
        time_ns += n % 100 ? gap_ns : 30 * gap_ns;
        take_out(&direction, &pool, time_ns);
        struct frame *frame = frame_pool_take(&pool);
        if (!frame)
            return 1;
        frame->length = FRAME_BYTES;
        frame->ecn = n % 2 ? ECN_ECT_0 : ECN_ECT_1;
        frame->flow = (uint32_t)(n % FLOWS);
        enum fate fate = direction_arrive(&direction, frame, time_ns);
        if (fate == FATE_OVERSIZE && written.settings.mtu_icmp)
            answer(&direction, &pool, frame);
        if (fate != FATE_ACCEPTED)
            frame_pool_return(&pool, frame);
    }
    take_out(&direction, &pool, UINT64_MAX - 1);
    double spent_ns = (double)(cpu_ns() - begun_ns) / (double)frames;
    if (!direction_conserves(&direction) || direction_in_flight(&direction))
        return 1;
    printf("%.2f\n", spent_ns);
    return 0;
}
