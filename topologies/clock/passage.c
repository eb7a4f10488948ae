#include "passage.h"

static struct passage_entry *entry(struct passage *passage, uint64_t number) {
    return &passage->entries[number % PASSAGE_ENTRIES_MAX];
}

// The oldest entry of this key that has not left, in [from, to); `to` if there is none.
static uint64_t find(struct passage *passage, uint64_t key, uint64_t from, uint64_t to) {
    while (from < to && (entry(passage, from)->key != key || entry(passage, from)->has_left))
        from++;
    return from;
}

void passage_enter(struct passage *passage, uint64_t key, uint64_t at_ns) {
    if (passage->end - passage->oldest == PASSAGE_ENTRIES_MAX && passage->oldest++ == passage->waiting)
        passage->waiting++;
    *entry(passage, passage->end++) = (struct passage_entry){.key = key, .at_ns = at_ns};
}

uint64_t passage_leave(struct passage *passage, uint64_t key) {
    uint64_t number = find(passage, key, passage->waiting, passage->end);
    if (number < passage->end) {
        passage->waiting = number + 1;
        if (passage->waiting - passage->oldest > PASSAGE_PASSED_MAX)
            passage->oldest = passage->waiting - PASSAGE_PASSED_MAX;
    } else {
        number = find(passage, key, passage->oldest, passage->waiting);
        if (number == passage->waiting)
            return 0;
    }
    entry(passage, number)->has_left = true;
    return entry(passage, number)->at_ns;
}
