#include "drop_list.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dropper.h"
#include "failure.h"

#define SEPARATORS ", \t\r\n"

static size_t words_for(uint64_t length) {
    return (length + DROPPER_VERDICTS_PER_WORD - 1) / DROPPER_VERDICTS_PER_WORD;
}

static void grow(struct verdicts *verdicts, uint64_t length) {
    size_t before = words_for(verdicts->length), after = words_for(length);
    uint64_t *words = realloc(verdicts->words, after * sizeof(*words));

    if (!words)
        fail(errno, "no memory for a pattern of %llu packets", (unsigned long long)length);
    memset(words + before, 0, (after - before) * sizeof(*words));
    verdicts->words = words;
    verdicts->length = length;
}

static uint64_t parse_index(const char *option, const char **text) {
    char *end;
    uint64_t index;

    if (!isdigit((unsigned char)**text))
        refuse("%s: \"%.20s\" where a packet index was expected, as in 3,7-9", option, *text);
    errno = 0;
    index = strtoull(*text, &end, 10);
    if (errno || index >= DROPPER_PACKETS_MAX)
        refuse("%s: index %.*s: must be less than %u", option, (int)(end - *text), *text,
               DROPPER_PACKETS_MAX);
    *text = end;
    return index;
}

static void drop_range(struct verdicts *verdicts, uint64_t first, uint64_t last) {
    if (last >= verdicts->length)
        grow(verdicts, last + 1);
    for (uint64_t n = first; n <= last; n++)
        verdicts->words[n / DROPPER_VERDICTS_PER_WORD] |= 1ull << (n % DROPPER_VERDICTS_PER_WORD);
}

struct verdicts parse_drop_list(const char *option, const char *text) {
    struct verdicts verdicts = {0};

    for (text += strspn(text, SEPARATORS); *text; text += strspn(text, SEPARATORS)) {
        uint64_t first = parse_index(option, &text), last = first;

        if (*text == '-') {
            text++;
            last = parse_index(option, &text);
        }
        if (last < first)
            refuse("%s: %llu-%llu: a range goes from the smaller index to the larger", option,
                   (unsigned long long)first, (unsigned long long)last);
        if (*text && !strchr(SEPARATORS, *text))
            refuse("%s: \"%.20s\" after an index: separate indices by commas, as in 3,7-9", option, text);
        drop_range(&verdicts, first, last);
    }
    return verdicts;
}

static char *read_file(const char *option, const char *path) {
    FILE *file = fopen(path, "re");
    char *text = NULL;
    size_t size = 0;
    ssize_t length;

    if (!file)
        refuse("%s: cannot read %s: %s", option, path, strerror(errno));
    length = getdelim(&text, &size, '\0', file);
    if (length < 0 && ferror(file))
        refuse("%s: cannot read %s: %s", option, path, strerror(errno));
    if (length > 0 && text[length - 1] == '\0')
        refuse("%s: %s is not a text file: it should be a list as in 3,7-9", option, path);
    fclose(file);
    return text;
}

struct verdicts read_drop_list(const char *option, const char *path) {
    char *text = read_file(option, path);
    struct verdicts verdicts = parse_drop_list(option, text ? text : "");

    free(text);
    return verdicts;
}

void extend(struct verdicts *verdicts, const char *option, uint64_t length) {
    if (length < verdicts->length)
        refuse("%s %llu: packet %llu is dropped, so the pattern is at least %llu long", option,
               (unsigned long long)length, (unsigned long long)verdicts->length - 1,
               (unsigned long long)verdicts->length);
    if (length)
        grow(verdicts, length);
}

bool is_dropped(const struct verdicts *verdicts, uint64_t n) {
    return n < verdicts->length &&
           (verdicts->words[n / DROPPER_VERDICTS_PER_WORD] >> (n % DROPPER_VERDICTS_PER_WORD)) & 1;
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
