// arena.c -- memory in big pieces, freed all at once; and one copy of each string.
//
// A compilation allocates small nodes and never frees them, so an allocation is a bump of a pointer. Pieces come
// zeroed from calloc, which costs nothing for pages never touched.
#include "arena.h"
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Piece Piece;
struct Piece {
    Piece *older;
    size_t size, used;
};  // the bytes follow

struct Arena {
    Piece *newest;
};

enum { ALIGN = 16, PIECE_SIZE = 256 * 1024 };
#ifdef __SANITIZE_ADDRESS__
enum { GUARDED = 1 };
#else
enum { GUARDED = 0 };
#endif
static const size_t HEADER = (sizeof(Piece) + ALIGN - 1) / ALIGN * ALIGN;

static void out_of_memory(size_t size)
{
    fprintf(stderr, "gmc: out of memory (%zu bytes asked for)\n", size);
    exit(2);
}

Arena *arena_new(void)
{
    Arena *a = calloc(1, sizeof *a);
    if (!a) out_of_memory(sizeof *a);
    return a;
}

void arena_free(Arena *a)
{
    if (!a) return;
    for (Piece *p = a->newest; p;) {
        Piece *older = p->older;
        free(p);
        p = older;
    }
    free(a);
}

void *arena_alloc(Arena *a, size_t size)
{
    if (size > SIZE_MAX / 4) out_of_memory(size);
    if (!GUARDED) size = (size + ALIGN - 1) / ALIGN * ALIGN;
    Piece *p = a->newest;
    if (!p || p->size - p->used < size) {
        size_t room = size > PIECE_SIZE || GUARDED ? size : PIECE_SIZE;
        p = calloc(1, HEADER + room);
        if (!p) out_of_memory(size);
        *p = (Piece){.older = a->newest, .size = room};
        a->newest = p;
    }
    void *bytes = (char *)p + HEADER + p->used;
    p->used += size;
    return bytes;
}

void *arena_copy(Arena *a, const void *from, size_t size)
{
    void *to = arena_alloc(a, size);
    if (size) memcpy(to, from, size);
    return to;
}

void *arena_grow(Arena *a, const void *items, int n, int *size, size_t each)
{
    if (n > INT_MAX / 2) out_of_memory(SIZE_MAX);
    *size = n < 4 ? 8 : 2 * n;
    void *more = arena_alloc(a, each * (size_t)*size);
    if (n) memcpy(more, items, each * (size_t)n);
    return more;
}

char *arena_strdup(Arena *a, const char *s) { return arena_copy(a, s, strlen(s) + 1); }

char *arena_printf(Arena *a, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *text = arena_alloc(a, (size_t)n + 1);
    va_start(args, format);
    vsnprintf(text, (size_t)n + 1, format, args);
    va_end(args);
    return text;
}
