// map.c -- an open-addressed table of pointers, at most half full. Entries are never removed.
#include "map.h"
#include <stdint.h>

typedef struct MapSlot {
    const void *key;
    void *value;
} MapSlot;

static MapSlot *find(const Map *m, const void *key)
{
    uint64_t h = (uint64_t)(uintptr_t)key * 0x9E3779B97F4A7C15u;  // Fibonacci hashing (Knuth)
    for (size_t i = (size_t)(h >> 20);; i++) {
        MapSlot *s = &m->slot[i & (m->nslots - 1)];
        if (!s->key || s->key == key) return s;
    }
}

void *map_get(const Map *m, const void *key) { return m->nslots ? find(m, key)->value : NULL; }

void map_put(Arena *a, Map *m, const void *key, void *value)
{
    if (2 * m->count >= m->nslots) {
        Map larger = {.nslots = m->nslots ? 2 * m->nslots : 16, .count = m->count};
        larger.slot = NEW_N(a, MapSlot, larger.nslots);
        for (size_t i = 0; i < m->nslots; i++)
            if (m->slot[i].key) *find(&larger, m->slot[i].key) = m->slot[i];
        *m = larger;
    }
    MapSlot *s = find(m, key);
    if (!s->key) m->count++;
    *s = (MapSlot){key, value};
}
