/* Drop lists, "3,7-9": packet indices and ranges, separated by commas or white space; and their bitmaps. */
#ifndef DROP_LIST_H
#define DROP_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Verdicts of packets 0 to length - 1: bit n % 64 of word n / 64 is set if packet n is dropped. */
struct verdicts {
    uint64_t *words;
    uint64_t length; /* packets */
};

/* Reads a list into verdicts that are empty; their length ends behind the last index. False: `why` says what
 * is wrong with it, and the words are to be freed all the same. */
bool parse_drop_list(const char *text, struct verdicts *verdicts, char *why, size_t size);

/* Makes the pattern longer, with packets that pass. False: there is no memory, or the length would cut it. */
bool extend(struct verdicts *verdicts, uint64_t length);

bool is_dropped(const struct verdicts *verdicts, uint64_t n);

/* As numbers ("3, 7, 8, 9") for JSON, and as ranges ("3,7-9"), which --drop takes. */
void print_indices(FILE *to, const struct verdicts *verdicts);
void print_ranges(FILE *to, const struct verdicts *verdicts);

#endif
