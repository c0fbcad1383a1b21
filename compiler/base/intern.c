// intern.c -- one copy of each string, so that names compare with `==`.
//
// An open-addressed table of pointers; the strings live until the program ends, in an arena of their own.
#include "arena.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    Arena *arena;
    const char **slot;
    size_t nslots, count;
} strings;

static size_t hash(const char *s, size_t n)  // FNV-1a (Fowler, Noll and Vo)
{
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)s[i]) * 1099511628211u;
    return (size_t)(h ^ h >> 32);
}

static const char **find(const char *s, size_t n)
{
    for (size_t i = hash(s, n);; i++) {
        const char **slot = &strings.slot[i & (strings.nslots - 1)];
        if (!*slot || (strncmp(*slot, s, n) == 0 && (*slot)[n] == '\0')) return slot;
    }
}

static void grow(void)
{
    const char **old = strings.slot;
    size_t n = strings.nslots;
    strings.nslots = n ? 2 * n : 1024;
    strings.slot = calloc(strings.nslots, sizeof *strings.slot);
    if (!strings.slot) {
        fprintf(stderr, "gmc: out of memory\n");
        exit(2);
    }
    for (size_t i = 0; i < n; i++)
        if (old[i]) *find(old[i], strlen(old[i])) = old[i];
    free(old);
}

const char *intern_n(const char *s, size_t n)
{
    if (!strings.arena) strings.arena = arena_new();
    if (2 * strings.count >= strings.nslots) grow();
    const char **slot = find(s, n);
    if (!*slot) {
        char *copy = arena_alloc(strings.arena, n + 1);
        memcpy(copy, s, n);
        *slot = copy;
        strings.count++;
    }
    return *slot;
}

const char *intern(const char *s) { return intern_n(s, strlen(s)); }
