// types.h -- what extents.c, types.c and sizes.c share: one pass over the types of a model, which may be tried in silence and forgotten.
#ifndef GMC_TYPES_H
#define GMC_TYPES_H
#include "check.h"

typedef struct Types {
    Arena *a;
    Diags *d;
    const Library *lib;
    Map linear;     // Ast -> SizeSum, of products: each is looked at once
    bool too_deep;  // reported
    int undecided;  // sizes that only the data can show to be the same
    List *failing;  // Stmt: those with an error, where a list is wanted
} Types;

// ---- extents.c ----

typedef struct SizeTerm {
    Ast *atom;
    double k;
} SizeTerm;
typedef struct SizeSum {  // c + k*atom + ...
    double c;
    int n;
    SizeTerm *term;
} SizeSum;

enum { MOST_SIZES = 40 };  // terms; a longer sum is an atom

Ast *size_node(Types *t, AstKind kind, Span at, int nkids, Ast *x, Ast *y);  // a whole number; 1 and a message if it is too deep
Ast *size_int(Types *t, Span at, double value);
Ast *size_op(Types *t, Span at, Op op, Ast *x, Ast *y);
Ast *size_of_sum(Types *t, const SizeSum *l, Span at);
void add_size(Types *t, SizeSum *l, Ast *atom, double k);
void add_sizes(Types *t, SizeSum *to, const SizeSum *l, double k);

typedef struct Binding {  // parameters of a distribution and their arguments
    const Distribution *dist;
    Ast **args;
} Binding;
// a number that the text says, in terms of the parameters if b is not NULL; false: it says none
bool constant_value(const Ast *e, const Binding *b, double *v);

// ---- types.c ----

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
