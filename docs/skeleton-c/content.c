#include "content.h"

#include <stdlib.h>

uint8_t *make_content(uint64_t seed, uint64_t size_bytes) {
    uint8_t *content = malloc(size_bytes + 8);
    if (content == NULL)
        return NULL;
    for (uint64_t at = 0; at < size_bytes; at += 8) {
        uint64_t z = seed += 0x9E3779B97F4A7C15;
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
        z = (z ^ z >> 27) * 0x94D049BB133111EB;
        z ^= z >> 31;
        for (int i = 0; i < 8; i++)
            content[at + i] = (uint8_t)(z >> 8 * i);
    }
    return content;
}
