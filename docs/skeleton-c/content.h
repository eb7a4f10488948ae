// The content of every transfer: SplitMix64's words from the assignment's seed on, little-endian.
#ifndef CONTENT_H
#define CONTENT_H

#include <stdint.h>

enum { HASH_TEXT_BYTES = 64 };

// The content, to be freed by nobody; NULL where there is no memory for it.
uint8_t *make_content(uint64_t seed, uint64_t size_bytes);

#endif
