#include "failure.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/libbpf.h>

static char libbpf_warning[512];

_Noreturn void refuse(const char *format, ...) {
    va_list arguments;

    va_start(arguments, format);
    fputs("dropper: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(EXIT_REFUSED);
}

_Noreturn void fail(int error, const char *format, ...) {
    va_list arguments;

    va_start(arguments, format);
    fputs("dropper: ", stderr);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    if (error)
        fprintf(stderr, ": %s", strerror(abs(error)));
    if (libbpf_warning[0])
        fprintf(stderr, " (%s)", libbpf_warning);
    fputc('\n', stderr);
    exit(EXIT_FAILED);
}

static int keep_first(enum libbpf_print_level level, const char *format, va_list arguments) {
    if (level == LIBBPF_WARN && !libbpf_warning[0]) {
        vsnprintf(libbpf_warning, sizeof(libbpf_warning), format, arguments);
        libbpf_warning[strcspn(libbpf_warning, "\n")] = '\0';
    }
    return 0;
}

void keep_libbpf_warning(void) {
    libbpf_set_print(keep_first);
}

void forget_libbpf_warning(void) {
    libbpf_warning[0] = '\0';
}
