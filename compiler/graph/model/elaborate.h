// elaborate.h -- from the checked tree to index notation.
#ifndef GMC_GRAPH_ELABORATE_H
#define GMC_GRAPH_ELABORATE_H
#include "../../front/front.h"
#include "../graph.h"

typedef struct Env {  // values of names: indices of loops, arguments of distributions
    const Decl *decl;
    Expr *value;
    const struct Env *outer;
} Env;

// The index of a loop around a definition, as a table of its elements: in for (j in 1:J) for (i in first[j]:last[j]) m[i] = ...; the j of
// each i.
typedef struct Lookup {
    const Decl *index;
    Var *table;
    struct Lookup *next;
} Lookup;

typedef struct Shape {
    int rank;
    Expr *dim[MAX_RANK];
} Shape;

bool is_between(FunctionId f, int nargs);  // covariances between two sets of points
Shape shape_of(Graph *g, const Ast *e, const Env *env);  // rank and dimensions of an expression of the tree
// if each z[j] has sizes of its own, `whole` gets those of the first n subscripts (NULL: no number)
void own_sizes(Graph *g, const Decl *d, int n, Expr *const *subscript, Shape *whole);
Expr *elaborate(Graph *g, const Ast *e, const Env *env, int n, Expr *const *at);  // element `at` of e, a scalar
Expr *elaborate_whole(Graph *g, const Ast *e, const Env *env);                    // e as a scalar, a reference to an array, or an ARRAY
// for one element of a vectorised statement
Expr *elaborate_argument(Graph *g, const Ast *a, const Env *env, int want, int extra, Expr *const *at);
// the same of a mixture: its weights, and argument i of a component of that number
Expr *elaborate_weights(Graph *g, const Stmt *s, const Env *env, int extra, Expr *const *at);
Expr *elaborate_of_component(Graph *g, const Stmt *s, int i, const Env *env, int want, int extra, Expr *const *at, Expr *component);
const Env *env_bind(Graph *g, const Env *outer, const Decl *decl, Expr *value);                // outer, with one more name and its value
Expr *elaborate_rule(Graph *g, const Ast *e, int n, Decl *const *names, Expr *const *values);  // an expression of a stdlib file
#endif
