// hoist.h -- sums that depend on data only leave the sweep.
#ifndef GMC_GRAPH_HOIST_H
#define GMC_GRAPH_HOIST_H
#include "../algebra/few_rows.h"

typedef struct Fresh {  // names of variables that are made beside a graph, which does not change
    const Graph *g;
    int nvars;  // the graph's and these: the number of the next one
    Map taken, numbered;
} Fresh;

typedef struct Sums {  // statistics of data: those of the graph, and new ones
    const Graph *g;
    Fresh *names;
    Sum *first;
    const Rows *route;      // new statistics are read only where this draw has many rows; NULL: everywhere
    bool only_closed;       // none is made: sums that need one stay where they are
    const Update *serving;  // the update that reads new statistics, or NULL
} Sums;

Var *fresh_var(Fresh *n, const char *stem, VarKind kind);  // a variable with an unused name that begins with stem
void fresh_forget(Fresh *n, const Var *v);                 // frees the name
typedef struct Keys {
    int n;
    Expr *key[MAX_RANK], *extent[MAX_RANK], *at[MAX_RANK];
} Keys;
// The sum over loops of value, over the rows whose keys equal `at`, as an expression over statistics of data;
// NULL if it must stay in the sweep.
Expr *hoist_sum(Sums *to, const Keys *keys, const Loops *loops, Expr *value);
Expr *keys_at(const Keys *keys, Expr *ref);                     // the reference with the subscripts that are keys replaced by those in `at`
bool varies(const Expr *e, const Loops *l);                     // e depends on an index of the loops
Expr *where_observed(const Graph *g, Expr *data, Expr *value);  // the value if all data in `data` are observed, else 0
// sum of data by targets, at `at`: found again if it exists
Expr *statistic(Sums *to, const Loops *loops, int n, Expr *const *target, Expr *const *extent, Expr *value, Expr *const *at);
#endif
