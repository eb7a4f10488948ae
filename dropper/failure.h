/* Failures of the command: one line on standard error, and its exit status. */
#ifndef FAILURE_H
#define FAILURE_H

enum exit_status {
    EXIT_FAILED = 1,  /* the system refused */
    EXIT_REFUSED = 2, /* the command line is wrong */
};

/* For a wrong command line: names the option, its value and what would be right. */
_Noreturn void refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* For a request that the system refused; `error` is an errno, positive or negative, or 0. */
_Noreturn void fail(int error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Keeps libbpf quiet, and its first warning for the line of `fail`. */
void keep_libbpf_warning(void);
void forget_libbpf_warning(void);

#endif
