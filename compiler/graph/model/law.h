// law.h -- a distribution at given arguments: its density, the ends of its support, the names of its parameters.
#ifndef GMC_GRAPH_LAW_H
#define GMC_GRAPH_LAW_H
#include "elaborate.h"

typedef struct Names {
    int n, size;
    const char **name;
    Expr **value;
} Names;  // within a law: of several entries of one name the last is used

Expr *law_of(Graph *g, const Ast *e, const Env *env, const Distribution *d, LawPart part);  // normal_lpdf(y | mu, s)
Expr *added_density(Expr *e);                                                               // e as a term of the log joint
Expr *at_infinity(Expr *e, int side);  // whether data make e infinite on this side; NULL: they cannot
bool serves_at_end(const Expr *e);     // has a value and derivatives also at the ends of a support, being made of sums and products
// the names of its parameters and of its value, bound to these expressions
const Env *bind_arguments(Graph *g, const Distribution *d, int nargs, Expr **args, Expr *value);
void support_ends(Graph *g, const Distribution *d, int nargs, Expr **args, Expr *value, Expr **lo, Expr **hi);  // NULL: open
void names_add(Graph *g, Names *t, const char *name, Expr *value);              // from now on the name has this value
const Env *names_bind(Graph *g, const Env *env, const Ast *e, const Names *t);  // env, with the names that e mentions
#endif
