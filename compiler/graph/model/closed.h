// closed.h -- recursions in closed form.
#ifndef GMC_GRAPH_CLOSED_H
#define GMC_GRAPH_CLOSED_H
#include "../graph.h"

// the log density with recursions of products written as products. NULL: v enters other series, or not through logarithms
Expr *in_closed_form(Graph *g, Expr *log_density, Var *v);

typedef struct Recursion {  // x[1] = first, x[k] = next in x[k-1], along one subscript, others being loops
    const Series *s;
    const Site *first, *next;
    int along;
    Index *index;  // of the subscript along, in `next`
    Expr *before;  // x[k-1] there
} Recursion;

bool first_order(const Series *s, Recursion *r);  // false: it has another form
#endif
