// Frames that are on their way, in the order in which they leave: by their exits and, where these are equal,
// by their numbers.
//
// A frame that leaves no sooner than all before it goes behind them, in a list. A frame that overtakes goes
// into a pairing heap (Fredman, Sedgewick, Sleator, Tarjan, Algorithmica 1986). So a line without
// overtaking is a plain queue, and neither takes memory of its own.
#pragma once

#include "frame_pool.h"

struct delay_line {
    struct frames in_order;
    struct frame *overtaking; // the heap's root
};

// Takes a frame whose exit_ns and number are set.
void delay_line_add(struct delay_line *line, struct frame *frame);

// The frame that leaves first, or NULL.
struct frame *delay_line_first(const struct delay_line *line);

// The same, and it is no longer in the line.
struct frame *delay_line_take(struct delay_line *line);

// Frames inside, counted one by one.
uint64_t delay_line_count(const struct delay_line *line);
