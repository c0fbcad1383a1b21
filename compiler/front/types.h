// types.h -- what files from undecided.c to sizes.c share: one pass over the types of a model, which may be tried in silence and forgotten.
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

// ---- undecided.c ----

// An unknown whose every statement is `name ~ distribution(...)`, without a type, and whose arguments are one number each: nothing on the
// left decides its size.
bool undecided_size(Arena *a, const Library *lib, Decl *d);
const Decl *undecided_size_in(Arena *a, const Library *lib, const Ast *e);  // one that occurs in e, or NULL

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
// the same; e is of the distribution's parameters, whose arguments the statement has
bool types_constant(const Ast *e, const Distribution *d, const Stmt *s, double *value);

Decl *types_index(const Ast *e);  // a loop index in e that no sum within it binds, or NULL
bool types_has_index(const Ast *e);

// ---- shapes.c ----

void types_shape(Types *t, Decl *d);                        // gives d its type; after a message it is poisoned
bool types_merge(Types *t, Type *into, const Type *other);  // the larger of two shapes
bool types_same(Types *t, const Type *x, const Type *y);    // surely the same shape
// the largest value of a subscript, bounds of what it looks up included; NULL if it is not known
Ast *types_largest(Types *t, Ast *subscript);
// An extent of a distribution's value, in terms of the arguments: rows(mu) is the length of mu.
Ast *types_substitute(Types *t, Ast *e, const Distribution *dist, Ast **args);

typedef enum { SIZES_SAME, SIZES_DIFFERENT, SIZES_UNDECIDED } SizeRelation;
SizeRelation compare_sizes(Types *t, Ast *x, Ast *y, double *excess);  // *excess: by how much x exceeds y, where that is a number
bool types_same_size(Types *t, Span at, Ast *x, Ast *y);               // false, after a message: they differ
Ast *extent_plus(Types *t, Ast *e, double c);
Ast *extent_sum(Types *t, Ast *x, Ast *y);
Ast *extent_between(Types *t, Ast *lo, Ast *hi);  // hi - lo + 1

const char *types_text(Types *t, const Ast *e);  // for messages, cut short if it is long
const char *types_describe(Types *t, const Type *type);
const char *types_describe_rank(int rank);

// ---- expressions.c ----

bool types_of(Types *t, Ast *e);                                   // gives e its type; false: it is poisoned, after a message
bool types_known(Ast *e, Type type);                               // gives it this one; true
bool types_need_scalar(Types *t, const Ast *e, const char *what);  // else a message
bool types_need_int(Types *t, Ast *e, const char *what);
bool types_need_data(Types *t, const Ast *e, const char *what);
// messages about argument i of a distribution whose value has this shape
void types_argument(Types *t, Stmt *s, const Distribution *dist, int i, const Type *value);

// ---- types.c ----

void types_model(Types *t, Model *m);
#endif
