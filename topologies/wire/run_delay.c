#include "run_delay.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "system.h"

static uint64_t read_total(struct run_delay *run_delay) {
    char text[64];
    system_read_text(run_delay->fd, text, sizeof text, "/proc/thread-self/schedstat");
    uint64_t total_ns, times_run;
    run_delay->known = sscanf(text, "%*u %" SCNu64 " %" SCNu64, &total_ns, &times_run) == 2 && times_run > 0;
    return run_delay->known ? total_ns : 0;
}

void run_delay_open(struct run_delay *run_delay) {
    *run_delay = (struct run_delay){.fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)};
    if (run_delay->fd >= 0)
        run_delay->total_ns = read_total(run_delay);
}

uint64_t run_delay_since_last(struct run_delay *run_delay) {
    if (!run_delay->known)
        return 0;
    uint64_t total_ns = read_total(run_delay);
    uint64_t increase = total_ns - run_delay->total_ns;
    run_delay->total_ns = total_ns;
    return increase;
}
