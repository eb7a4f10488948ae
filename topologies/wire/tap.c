#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "system.h"

// Frames that the kernel holds for us while we are not scheduled: 120 ms of full frames at 1 Gbit/s.
enum { TX_QUEUE_LENGTH = 10000 };

// Takes what a frame longer than any that we forward has beyond its capacity, so that its true length is
// known.
static uint8_t excess[1 << 16];

static void bring_up(const char *interface, uint32_t mtu) {
    int socket = system_socket();
    struct ifreq request = {0};
    memcpy(request.ifr_name, interface, strlen(interface));
    request.ifr_qlen = TX_QUEUE_LENGTH;
    system_ioctl(socket, SIOCSIFTXQLEN, &request, "set the TAP's queue length");
    request.ifr_mtu = (int)mtu;
    system_ioctl(socket, SIOCSIFMTU, &request, "set the TAP's MTU");
    system_ioctl(socket, SIOCGIFFLAGS, &request, "read the TAP's flags");
    request.ifr_flags |= IFF_UP;
    system_ioctl(socket, SIOCSIFFLAGS, &request, "bring the TAP up");
    system_close(socket);
}

void tap_open(struct tap *tap, const char *netns_path, const char *interface, uint32_t mtu, bool keep) {
    const char *own_path = "/proc/thread-self/ns/net";
    int own_netns = system_open(own_path, O_RDONLY);
    int netns = system_open(netns_path, O_RDONLY);
    system_enter_netns(netns, netns_path);

    tap->interface = interface;
    tap->fd = system_open("/dev/net/tun", O_RDWR | O_NONBLOCK);
    struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI | (short)IFF_TUN_EXCL};
    memcpy(request.ifr_name, interface, strlen(interface));
    system_ioctl(tap->fd, TUNSETIFF, &request, "create the TAP (does an interface of that name exist?)");
    if (keep)
        system_ioctl(tap->fd, TUNSETPERSIST, (void *)1, "keep the TAP");
    arrivals_open(&tap->arrivals, tap->fd);
    bring_up(interface, mtu);
    tap->statistics = system_open("/proc/thread-self/net/dev", O_RDONLY);

    system_enter_netns(own_netns, own_path);
    system_close(netns);
    system_close(own_netns);
}

bool tap_read(const struct tap *tap, struct frame *frame, uint32_t capacity) {
    struct iovec parts[] = {{frame->bytes, capacity}, {excess, sizeof excess}};
    ssize_t length = readv(tap->fd, parts, 2);
    if (length < 0 && errno != EAGAIN)
        die(EXIT_FAILED, "cannot read %s: %s", tap->interface, strerror(errno));
    if (length <= 0)
        return false;
    frame->length = (uint32_t)length;
    return true;
}

bool tap_write(const struct tap *tap, const struct frame *frame) {
    return write(tap->fd, frame->bytes, frame->length) == (ssize_t)frame->length;
}

struct tap_drops tap_drops(const struct tap *tap) {
    char text[4096];
    system_read_text(tap->statistics, text, sizeof text, "the TAP's statistics");
    char label[IFNAMSIZ + 3];
    snprintf(label, sizeof label, " %s:", tap->interface);
    // Lines are right-aligned names: a space or a newline is before each.
    const char *line = strstr(text, label);
    if (!line) {
        label[0] = '\n';
        line = strstr(text, label);
    }
    struct tap_drops drops;
    // receive: bytes packets errs drop fifo frame compressed multicast; transmit: bytes packets errs drop
    const char *columns = "%*u %*u %*u %" SCNu64 " %*u %*u %*u %*u %*u %*u %*u %" SCNu64;
    if (!line || sscanf(line + strlen(label), columns, &drops.incoming, &drops.outgoing) != 2)
        die(EXIT_FAILED, "cannot find %s in /proc/net/dev of its namespace", tap->interface);
    return drops;
}
