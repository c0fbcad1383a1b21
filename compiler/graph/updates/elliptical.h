// elliptical.h -- a vector with a joint normal prior and any likelihood.
#ifndef GMC_GRAPH_ELLIPTICAL_H
#define GMC_GRAPH_ELLIPTICAL_H
#include "../graph.h"

typedef struct Ellipse {
    const Factor *prior;       // the statement whose law the ellipse is drawn from
    Conditional *conditional;  // all other terms, for one vector v[i, ...] if each factor has one vector, else for all
    const char *routine;       // draws from the prior: of the library's `sample`
    int nargs;
    Expr *arg[MAX_RANK];
    Expr *mean;  // of the element that is studied
} Ellipse;

Ellipse *find_ellipse(Graph *g, Var *v, bool collapsed, const char **because);  // NULL: *because says why there is none
// the statement that gives each vector v[i, ...] a joint normal law of its own; NULL: there is none
const Factor *joint_prior(Graph *g, Var *v, bool collapsed);
#endif
