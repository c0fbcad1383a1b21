// law.h -- a distribution at given arguments: its density, its ends, what its parameters are called.
#ifndef GMC_GRAPH_LAW_H
#define GMC_GRAPH_LAW_H
#include "elaborate.h"

typedef struct Names {
    int n, size;
    const char **name;
    Expr **value;
} Names;  // in a law: the last one of a name counts

Expr *law_of(Graph *g, const Ast *e, const Env *env, const Distribution *d, LawPart part);  // normal_lpdf(y | mu, s)
Expr *added_density(Expr *e);                                                               // e as a term of the log joint
Expr *at_infinity(Expr *e, int side);  // whether data make e infinite on this side; NULL: they cannot
bool serves_at_end(const Expr *e);     // has a value, and derivatives, at ends of a support: made of sums and products
// names of its parameters and of its value, bound to these
const Env *bind_arguments(Graph *g, const Distribution *d, int nargs, Expr **args, Expr *value);
void support_ends(Graph *g, const Distribution *d, int nargs, Expr **args, Expr *value, Expr **lo, Expr **hi);  // NULL: open
void names_add(Graph *g, Names *t, const char *name, Expr *value);              // name stands for value from now on
const Env *names_bind(Graph *g, const Env *env, const Ast *e, const Names *t);  // env, with the names that e holds
#endif
