// hoist.h -- sums that depend on data only leave the sweep.
#ifndef GMC_GRAPH_HOIST_H
#define GMC_GRAPH_HOIST_H
#include "../algebra/few_rows.h"

typedef struct Fresh {  // of variables made beside a graph, which stays as it is
    const Graph *g;
    int nvars;  // theirs and the graph's: the number of the next one
    Map taken, numbered;
} Fresh;

typedef struct Sums {  // statistics of data: those of the graph, and those that are asked for
    const Graph *g;
    Fresh *names;
    Sum *first;
    const Rows *route;      // what is asked for now serves only the route with many rows of this draw; NULL: all
    const Update *serving;  // and this update, or NULL
} Sums;

Var *fresh_var(Fresh *n, const char *stem, VarKind kind);  // a variable with a name that nothing has, beginning with stem
void fresh_forget(Fresh *n, const Var *v);                 // the name is free again
typedef struct Keys {
    int n;
    Expr *key[MAX_RANK], *extent[MAX_RANK], *at[MAX_RANK];
} Keys;
// The sum over loops of value, over the rows whose keys equal `at`, as an expression over statistics of data;
// NULL if it must stay in the sweep.
Expr *hoist_sum(Sums *to, const Keys *keys, const Loops *loops, Expr *value);
Expr *keys_at(const Keys *keys, Expr *ref);                     // the reference with its subscripts that are keys at `at`
bool varies(const Expr *e, const Loops *l);                     // with an index of the loops
Expr *where_observed(const Graph *g, Expr *data, Expr *value);  // the value where nothing that the data hold is missing, else 0
// sum of data by targets, at `at`: found again if it exists
Expr *statistic(Sums *to, const Loops *loops, int n, Expr *const *target, Expr *const *extent, Expr *value, Expr *const *at);
#endif
