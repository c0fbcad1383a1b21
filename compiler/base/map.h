// map.h -- from pointers (interned names, nodes) to pointers.
#ifndef GMC_MAP_H
#define GMC_MAP_H
#include "arena.h"

typedef struct Map {
    struct MapSlot *slot;
    size_t nslots, count;
} Map;  // all zero: empty

void *map_get(const Map *m, const void *key);                  // NULL if absent
void map_put(Arena *a, Map *m, const void *key, void *value);  // replaces; key not NULL
#endif
