#include "law.h"

void law_frame(struct law *law, uint64_t entered_ns, uint64_t left_ns, uint64_t bytes) {
    uint64_t alone_ns = entered_ns + law->delay_ns;
    uint64_t begins_ns = alone_ns > law->due_ns ? alone_ns : law->due_ns;
    law->due_ns = begins_ns + bytes * 1000000000 / law->bytes_per_s;
    law->frames++;
    if (left_ns < law->due_ns) {
        uint64_t early_ns = law->due_ns - left_ns;
        law->early_max_ns = early_ns > law->early_max_ns ? early_ns : law->early_max_ns;
    }
    uint64_t late_ns = left_ns > law->due_ns ? left_ns - law->due_ns : 0;
    lateness_record(&law->lateness, late_ns);
    if (late_ns > law->late_bound_ns) {
        law->late++;
        overdue_add(&law->overdue, law->due_ns, left_ns);
    }
}
