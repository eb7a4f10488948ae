// Preloaded into user-mode Linux on hosts whose CPU has more state (AMX) than that kernel knows. It restores
// the registers of its processes with its own, shorter XSAVE area, which such a host refuses (EINVAL), and
// then panics at its first process. Here the rest of the area is filled in with what the process has.
#include <elf.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

// Larger than any XSAVE area (11 KiB with AMX).
static char area[65536] __attribute__((aligned(64)));

static long set_xstate(long pid, const struct iovec *given) {
    struct iovec whole = {area, sizeof(area)};

    if (syscall(SYS_ptrace, PTRACE_GETREGSET, pid, NT_X86_XSTATE, &whole) < 0)
        return -1;
    if (given->iov_len >= whole.iov_len)
        return syscall(SYS_ptrace, PTRACE_SETREGSET, pid, NT_X86_XSTATE, given);
    memcpy(area, given->iov_base, given->iov_len);
    return syscall(SYS_ptrace, PTRACE_SETREGSET, pid, NT_X86_XSTATE, &whole);
}

// The system call stores what was peeked; the function of the C library returns it (ptrace(2), NOTES).
static long peek(long request, long pid, void *address) {
    long value;

    if (syscall(SYS_ptrace, request, pid, address, &value) < 0)
        return -1;
    errno = 0;
    return value;
}

long ptrace(enum __ptrace_request request, ...) {
    va_list arguments;

    va_start(arguments, request);
    long pid = va_arg(arguments, pid_t);
    void *address = va_arg(arguments, void *);
    void *data = va_arg(arguments, void *);
    va_end(arguments);
    if (request == PTRACE_SETREGSET && (long)address == NT_X86_XSTATE)
        return set_xstate(pid, data);
    if (request == PTRACE_PEEKTEXT || request == PTRACE_PEEKDATA || request == PTRACE_PEEKUSER)
        return peek(request, pid, address);
    return syscall(SYS_ptrace, request, pid, address, data);
}
