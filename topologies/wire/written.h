// One direction of a link as text, a line "name value" for each thing that it has. Python writes it
// (topologies/written.py), and everything that carries packets reads it here: written.c has the one list of
// the names, of their bounds, and of what each needs.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "direction.h"

enum { WRITTEN_REFUSAL = 600 };

struct written {
    struct direction_settings settings; // but for max_frame_size, which is no matter of the text
    struct schedule_step *steps;        // of a line `steps`: the reader's, to free; or NULL
    uint32_t given;                     // bit n: the n-th name was read
    char refusal[WRITTEN_REFUSAL];      // one line, once something was refused
};

enum written_answer { WRITTEN_UNKNOWN, WRITTEN_TAKEN, WRITTEN_REFUSED };

// Nothing is read yet.
void written_begin(struct written *written);

// Read one line. WRITTEN_UNKNOWN: no line of a link has this name.
enum written_answer written_take(struct written *written, const char *name, const char *value);

// The steps of a schedule come from elsewhere, and stay the caller's.
void written_use_steps(struct written *written, const struct schedule_step *steps, uint64_t count);

// Whether all that was read is a link. Nothing is taken after that.
bool written_end(struct written *written);

// Read a whole text of a link alone, which is changed. False: refused.
bool written_read(struct written *written, char *text);

// Write what was read as members of a JSON object, a comma behind each: numbers and truths. Queue, schedule
// and jitter have forms of their own in the report.
void written_print(const struct written *written, FILE *out);

// Refuse a line with an unknown name; `others` are further names that would be right, or "".
void written_refuse_name(struct written *written, const char *name, const char *others);

// The next line of a text, which is cut into names and values; false behind the last.
bool written_next_line(char **text, char **name, char **value);

// The names of the lines, for help.
extern const char WRITTEN_USAGE[];

// How report and text write these.
extern const char *const WRITTEN_QUEUES[], *const WRITTEN_REPEATS[], *const WRITTEN_LAWS[];
