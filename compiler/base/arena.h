// arena.h -- memory that lives as long as the compilation.
#ifndef GMC_ARENA_H
#define GMC_ARENA_H
#include <stddef.h>

typedef struct Arena Arena;

Arena *arena_new(void);
void arena_free(Arena *a);
void *arena_alloc(Arena *a, size_t size);  // zeroed, aligned to 16; never fails (exits with a message)
char *arena_strdup(Arena *a, const char *s);
char *arena_printf(Arena *a, const char *format, ...) __attribute__((format(printf, 2, 3)));
void *arena_copy(Arena *a, const void *from, size_t size);

#define NEW(a, T)      ((T *)arena_alloc((a), sizeof(T)))
#define NEW_N(a, T, n) ((T *)arena_alloc((a), sizeof(T) * (size_t)(n)))

// Lists grow: room for one more element behind the n that there are, of `size` places. Old places are not given back: a list of n elements
// takes at most 2n places in all. As in    ROOM(a, t->term, t->n, t->size);    t->term[t->n++] = term;
#define ROOM(a, items, n, size) ((n) < (size) ? (void)0 : (void)((items) = arena_grow((a), (items), (n), &(size), sizeof *(items))))
void *arena_grow(Arena *a, const void *items, int n, int *size, size_t each);

// One copy of each string: names compare with ==.
const char *intern(const char *s);
const char *intern_n(const char *s, size_t n);
#endif
