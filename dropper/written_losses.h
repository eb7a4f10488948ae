/*
 * Losses as text: lines "name value", the names of designs. Python writes them (each class of model.py and
 * clocked.py), and everything that loses packets reads them here. The command takes each line as an option,
 * too. This is the one list of models, of their parameters and of their bounds in C.
 *
 *   model none|uniform|ge|markov|pattern|ge-time|slots
 *   seed N
 *   p, r, k, h PROBABILITY       good_s, bad_s SECONDS       slot_ms MILLISECONDS
 *   drop LIST                    length N                    repeat true|false
 *   burst_max N                  only_longer_than BYTES
 */
#ifndef WRITTEN_LOSSES_H
#define WRITTEN_LOSSES_H

#include <stdbool.h>
#include <stdint.h>

#include "drop_list.h"
#include "losses.h"

enum losses_parameter {
    PARAMETER_MODEL,
    PARAMETER_SEED,
    PARAMETER_P,
    PARAMETER_R,
    PARAMETER_K,
    PARAMETER_H,
    PARAMETER_GOOD_S,
    PARAMETER_BAD_S,
    PARAMETER_SLOT_MS,
    PARAMETER_DROP,
    PARAMETER_LENGTH,
    PARAMETER_REPEAT,
    PARAMETER_BURST_MAX,
    PARAMETER_ONLY_LONGER_THAN,
    PARAMETERS,
};

/* Their names, by number. */
extern const char *const losses_names[PARAMETERS];

/* The options of each model, for help. */
extern const char losses_usage[];

struct written_losses {
    enum losses_model model;
    struct losses losses;
    uint64_t good_us, bad_us;     /* of ge-time: the mean of a stay; 0 for the others */
    struct verdicts pattern;      /* of packets or of slots: the reader's, to free */
    uint64_t slot_ns, first_slot; /* of slots; 0 for the others */
    bool repeats;
    /* The values that were read, by parameter. */
    uint32_t given;
    int named; /* the model's place among those of the text */
    double probabilities[PARAMETERS];
    uint64_t numbers[PARAMETERS];
    /* Once something was refused: the name of what is at fault, and what goes on behind it. One line. */
    char name[20], why[200];
};

enum losses_answer { LOSSES_UNKNOWN, LOSSES_TAKEN, LOSSES_REFUSED };

void written_losses_begin(struct written_losses *written);

/* Reads one line. LOSSES_UNKNOWN: no line of losses has this name. */
enum losses_answer written_losses_take(struct written_losses *written, const char *name, const char *value);

/* Whether all that was read is a model. Without any line, nothing is lost. */
bool written_losses_end(struct written_losses *written);

/* Reads a whole text, which is changed. False: refused. */
bool written_losses_read(struct written_losses *written, char *text);

/* The name of a model in texts; NULL: there is none. */
const char *losses_model_name(unsigned model);

#endif
