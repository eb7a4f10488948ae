#include "drop_list.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "losses.h"

#define SEPARATORS ", \t\r\n"

static size_t words_for(uint64_t length) {
    return (length + LOSSES_PER_WORD - 1) / LOSSES_PER_WORD;
}

static bool grow(struct verdicts *verdicts, uint64_t length) {
    size_t before = words_for(verdicts->length), after = words_for(length);
    uint64_t *words = realloc(verdicts->words, after * sizeof(*words));

    if (!words)
        return false;
    memset(words + before, 0, (after - before) * sizeof(*words));
    verdicts->words = words;
    verdicts->length = length;
    return true;
}

/* False: `why` is written. */
static bool parse_index(const char **text, uint64_t *index, char *why, size_t size) {
    char *end;

    if (!isdigit((unsigned char)**text)) {
        snprintf(why, size, "\"%.20s\" where a packet index was expected, as in 3,7-9", *text);
        return false;
    }
    errno = 0;
    *index = strtoull(*text, &end, 10);
    if (errno || *index >= LOSSES_PACKETS_MAX) {
        snprintf(why, size, "index %.*s: must be less than %u", (int)(end - *text < 20 ? end - *text : 20),
                 *text, LOSSES_PACKETS_MAX);
        return false;
    }
    *text = end;
    return true;
}

static bool drop_range(struct verdicts *verdicts, uint64_t first, uint64_t last) {
    if (last >= verdicts->length && !grow(verdicts, last + 1))
        return false;
    for (uint64_t n = first; n <= last;)
        if (n % LOSSES_PER_WORD == 0 && last - n >= LOSSES_PER_WORD) {
            verdicts->words[n / LOSSES_PER_WORD] = UINT64_MAX;
            n += LOSSES_PER_WORD;
        } else {
            verdicts->words[n / LOSSES_PER_WORD] |= 1ull << (n % LOSSES_PER_WORD);
            n++;
        }
    return true;
}

bool parse_drop_list(const char *text, struct verdicts *verdicts, char *why, size_t size) {
    for (text += strspn(text, SEPARATORS); *text; text += strspn(text, SEPARATORS)) {
        uint64_t first, last;

        if (!parse_index(&text, &first, why, size))
            return false;
        last = first;
        if (*text == '-') {
            text++;
            if (!parse_index(&text, &last, why, size))
                return false;
        }
        if (last < first)
            snprintf(why, size, "%llu-%llu: a range goes from the smaller index to the larger",
                     (unsigned long long)first, (unsigned long long)last);
        else if (*text && !strchr(SEPARATORS, *text))
            snprintf(why, size, "\"%.20s\" after an index: separate indices by commas, as in 3,7-9", text);
        else if (!drop_range(verdicts, first, last))
            snprintf(why, size, "no memory for a pattern of %llu packets", (unsigned long long)last + 1);
        else
            continue;
        return false;
    }
    return true;
}

bool extend(struct verdicts *verdicts, uint64_t length) {
    return length >= verdicts->length && (!length || grow(verdicts, length));
}

bool is_dropped(const struct verdicts *verdicts, uint64_t n) {
    return n < verdicts->length && (verdicts->words[n / LOSSES_PER_WORD] >> (n % LOSSES_PER_WORD)) & 1;
}

static uint64_t next_dropped(const struct verdicts *verdicts, uint64_t n) {
    while (n < verdicts->length && !is_dropped(verdicts, n))
        n++;
    return n;
}

static uint64_t end_of_burst(const struct verdicts *verdicts, uint64_t n) {
    while (is_dropped(verdicts, n))
        n++;
    return n;
}

void print_indices(FILE *to, const struct verdicts *verdicts) {
    const char *separator = "";

    for (uint64_t n = next_dropped(verdicts, 0); n < verdicts->length; n = next_dropped(verdicts, n + 1)) {
        fprintf(to, "%s%llu", separator, (unsigned long long)n);
        separator = ", ";
    }
}

void print_ranges(FILE *to, const struct verdicts *verdicts) {
    const char *separator = "";
    uint64_t end;

    for (uint64_t n = next_dropped(verdicts, 0); n < verdicts->length; n = next_dropped(verdicts, end)) {
        end = end_of_burst(verdicts, n);
        fprintf(to, "%s%llu", separator, (unsigned long long)n);
        if (end - 1 > n)
            fprintf(to, "-%llu", (unsigned long long)end - 1);
        separator = ",";
    }
}
