// Both ends of the QUIC interop runner's contract, over UDP without QUIC: the client asks for each kilobyte
// of a file by its offset until it has all. With HOSTILE, it first tries what no endpoint may do, and writes
// to /logs/done a line for each thing that worked.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PORT = 443, CHUNK = 1000, NAME = 64 };

struct request {
    char name[NAME];
    uint32_t offset;
};

static struct sockaddr_in address_of(const char *name) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    FILE *hosts = fopen("/etc/hosts", "r");
    char line[256];
    while (hosts && fgets(line, sizeof line, hosts)) {
        char *word = strtok(line, " \n"), *known = word;
        while (name && known && strcmp(known, name))
            known = strtok(NULL, " \n");
        if (name && known)
            inet_pton(AF_INET, word, &address.sin_addr);
    }
    return address;
}

static int serve(void) {
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in own = address_of(NULL), peer;
    if (bind(fd, (struct sockaddr *)&own, sizeof own)) {
        perror("bind");
        return 1;
    }
    for (;;) {
        struct request request;
        socklen_t length = sizeof peer;
        if (recvfrom(fd, &request, sizeof request, 0, (struct sockaddr *)&peer, &length) != sizeof request)
            continue;
        char path[NAME + 8], chunk[sizeof request.offset + CHUNK];
        snprintf(path, sizeof path, "/www/%.*s", NAME, request.name);
        int file = open(path, O_RDONLY);
        memcpy(chunk, &request.offset, sizeof request.offset);
        ssize_t got = pread(file, chunk + sizeof request.offset, CHUNK, request.offset);
        close(file);
        sendto(fd, chunk, sizeof request.offset + (got > 0 ? got : 0), 0, (struct sockaddr *)&peer, length);
    }
}

static int download(const char *url) {
    char host[NAME] = "", path[2 * NAME] = "/downloads/";
    struct request request = {0};
    if (sscanf(url, "https://%63[^:/]:443/%63s", host, request.name) != 2)
        return 1;
    strcat(path, request.name);
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct timeval patience = {.tv_usec = 100000};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    struct sockaddr_in server = address_of(host);
    int file = open(path, O_WRONLY | O_CREAT, 0644);
    for (;;) {
        char chunk[sizeof request.offset + CHUNK];
        sendto(fd, &request, sizeof request, 0, (struct sockaddr *)&server, sizeof server);
        ssize_t got = recv(fd, chunk, sizeof chunk, 0) - (ssize_t)sizeof request.offset;
        if (got < 0 || memcmp(chunk, &request.offset, sizeof request.offset))
            continue;
        if (got == 0)
            break;
        if (getenv("WRONG") && request.offset == 0)
            chunk[sizeof request.offset] ^= 1;
        request.offset += (uint32_t)write(file, chunk + sizeof request.offset, (size_t)got);
    }
    close(file);
    return 0;
}

static void note(FILE *done, const char *what, int worked) {
    if (worked)
        fprintf(done, "%s\n", what);
}

static int opens(const char *path) {
    return open(path, O_WRONLY | O_CREAT | O_APPEND, 0666) >= 0;
}

static void be_hostile(void) {
    FILE *done = fopen("/logs/done", "w");
    static const char *const PATHS[] = {
        "/etc/hosts",   "/www/content", "/certs/ca.pem",
        "/new",         "/usr/new",     "/bin/new",
        "/setup.sh",    "/etc/passwd",  "/proc/sys/net/ipv4/ip_forward",
        "/outside/new", "/open/new",    "/proc/1/root/new",
        "/sys/new",     "/.old/new",    "/proc/sysrq-trigger",
    };
    for (size_t i = 0; i < sizeof PATHS / sizeof PATHS[0]; i++)
        note(done, PATHS[i], opens(PATHS[i]));
    note(done, "mount", !mount("tmpfs", "/tmp", "tmpfs", 0, ""));
    note(done, "remount", !mount("", "/", "", MS_REMOUNT | MS_BIND, ""));
    note(done, "chroot", !chroot("/tmp"));
    note(done, "setuid", !setuid(0));
    note(done, "unshare", !unshare(CLONE_NEWNS));
    note(done, "mknod", !mknod("/tmp/device", S_IFBLK | 0666, 0));
    note(done, "kill", !kill(1, 0));
    note(done, "low socket", socket(AF_INET, SOCK_RAW, IPPROTO_UDP) >= 0);
    if (fork() == 0) { // a program with the set-user-ID bit, whose owner is root
        execl("/setuid", "/setuid", "who", (char *)NULL);
        _exit(0);
    }
    int status;
    wait(&status);
    note(done, "set-user-ID", WIFEXITED(status) && WEXITSTATUS(status) == 77);
    fclose(done);
    for (pid_t child; (child = fork()) >= 0;) // until there is no room
        if (child == 0) {
            setsid(); // out of the process group that is killed
            for (;;)
                pause();
        }
}

int main(int argc, char **argv) {
    if (argc == 2 && !strcmp(argv[1], "who"))
        return geteuid() == 0 ? 77 : 0;
    const char *testcase = getenv("TESTCASE"), *role = getenv("ROLE");
    if (!testcase || strcmp(testcase, "http3")) {
        printf("unsupported test case: %s\n", testcase ? testcase : "none");
        return 127;
    }
    if (role && !strcmp(role, "server"))
        return serve();
    if (getenv("HOSTILE"))
        be_hostile();
    while (getenv("FORKS"))
        fork();
    const char *requests = getenv("REQUESTS");
    return requests ? download(requests) : 1;
}
