// types.h -- what types.c and sizes.c share: one pass over the types of a model, which may be tried in silence and forgotten.
#ifndef GMC_TYPES_H
#define GMC_TYPES_H
#include "check.h"

typedef struct Types {
    Arena *a;
    Diags *d;
    const Library *lib;
    Map linear;     // Ast -> LinearSize, of products: each is looked at once
    bool too_deep;  // reported
    int undecided;  // sizes that only the data can show to be the same
    List *failing;  // Stmt: those with an error, where a list is wanted
} Types;

void types_model(Types *t, Model *m);
// a number that the text says; e is of the distribution's parameters, whose arguments the statement has
bool types_constant(const Ast *e, const Distribution *d, const Stmt *s, double *value);
bool types_of(Types *t, Ast *e);
// the largest value of a subscript, bounds of what it looks up included; NULL if it is not known
Ast *types_largest(Types *t, Ast *subscript);
bool types_merge(Types *t, Type *into, const Type *other);  // the larger of two shapes
bool types_same(Types *t, const Type *x, const Type *y);    // surely the same shape
bool types_has_index(const Ast *e);

// ---- sizes.c ----

// An unknown whose every statement is `name ~ distribution(...)`, without a type, and whose arguments are one number each: nothing on the
// left decides its size.
bool sizes_undecided(Arena *a, const Library *lib, Decl *d);
const Decl *sizes_undecided_in(Arena *a, const Library *lib, const Ast *e);  // one that occurs in e, or NULL

// Gives such unknowns the sizes that their uses decide (Facts.from_uses).
void sizes_from_uses(Arena *a, Model *m, const Library *lib);

// After types: one number shared by all elements of a vectorised statement, where one for each was probably meant.
void sizes_check(Arena *a, Model *m, const Library *lib, Diags *d);
#endif
