// collapsed.h -- indicators with their weights integrated out.
#ifndef GMC_GRAPH_COLLAPSED_H
#define GMC_GRAPH_COLLAPSED_H
#include "../graph.h"

typedef struct Predictive {  // a vector of probabilities in the conditional of an indicator: by one term, log ref
    Var *weights;
    Conditional *natural;  // that of the weights: Dirichlet
    Expr *ref;             // its element, subscripts in terms of u
    Expr *guard;           // when it counts; NULL: always
    bool varies;           // the value picks among several vectors
    struct Predictive *next;
} Predictive;

// NULL: v reads no weights that are integrated out, or cannot be drawn so (after a message)
struct Update *collapsed_update(Graph *g, Var *v);
bool collapses_served(Graph *g, const struct Update *updates);  // false after a message
#endif
