/* Drop lists, "3,7-9": packet indices and ranges, separated by commas or white space; and their bitmaps. */
#ifndef DROP_LIST_H
#define DROP_LIST_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Verdicts of packets 0 to length - 1: bit n % 64 of word n / 64 is set if packet n is dropped. */
struct verdicts {
    uint64_t *words;
    uint64_t length; /* packets */
};

/* Refuses what is not a list, naming the option. The length ends behind the last index. */
struct verdicts parse_drop_list(const char *option, const char *text);

/* The same from a file. */
struct verdicts read_drop_list(const char *option, const char *path);

/* Makes the pattern longer, with packets that pass; refuses a length that cuts it. */
void extend(struct verdicts *verdicts, const char *option, uint64_t length);

bool is_dropped(const struct verdicts *verdicts, uint64_t n);

/* As numbers ("3, 7, 8, 9") for JSON, and as ranges ("3,7-9"), which --drop takes. */
void print_indices(FILE *to, const struct verdicts *verdicts);
void print_ranges(FILE *to, const struct verdicts *verdicts);

#endif
