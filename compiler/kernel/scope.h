// scope.h -- which expressions have a name at a place of a kernel: what `outside` leaves names for, what emission writes.
//
// A name is valid from its node to the end of the scope, unless something that its expression reads is written before.
#ifndef GMC_SCOPE_H
#define GMC_SCOPE_H
#include "kernel.h"

typedef struct Known {
    const Expr *key;
    const Var *local;
} Known;
// g: whose series may read what is written
typedef struct Scope {
    int n, size;
    Known *known;
    Arena *arena;
    const Graph *g;
} Scope;

const Var *scope_find(const Scope *s, const Expr *e);  // or NULL
const Var *scope_find_negative(const Scope *s, const Expr *e);  // of a product, where e is -1 times that; or NULL
void scope_know(Scope *s, const Expr *e, const Var *local);
void scope_leave(Scope *s, int n);               // back to n names
void scope_written(Scope *s, const Node *list);  // what the nodes write has changed
void scope_wrote(Scope *s, const Node *n);       // the same of one node alone
#endif
