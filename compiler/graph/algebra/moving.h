// moving.h -- a block of unknowns, with the arrays that are computed from them.
#ifndef GMC_GRAPH_MOVING_H
#define GMC_GRAPH_MOVING_H
#include "slopes.h"
#include "gradient.h"

typedef struct Moving {  // unknowns, and the arrays that are computed from them
    int n, nseries, nfactored;
    Var **var;              // the unknowns, then the variables of the series, then the factors
    const Series **series;  // the series that the unknowns enter, each after those that it reads
    Factored *factored;     // of matrices that read the unknowns, none a series: an array of nfactored
} Moving;

// the block, with the series and factored matrices that it enters, in the joint with so many unknowns summed out
Moving block_with_series(const Graph *g, Var *const *block, int n, int sums);
bool in_series(const Series *s, const Var *v);  // v is one of its variables
// A statement of a series as a factor: adjoint[..] times the value of the element. Its derivatives by the block and the series are the
// contributions of this element to their adjoints.
Factor site_factor(const Site *t, Var *adjoint);
Var *adjoint_new(const Graph *g, const Var *v);                                     // adjoint_v, of the shape of v
bool series_differentiable(const Graph *g, const Moving *b, const char **because);  // and the matrices that are factored
Expr *by_factors(const Moving *b, Expr *e);  // e with elements of these arrays for elements of the factors
// as site_factor, of a matrix that is factored: adjoint[j, k]*matrix[j, k] in its lower triangle, which decides the factor
Factor matrix_factor(Expr *matrix, Var *adjoint, Span at);
// the derivatives of a factor of the model by the block and these arrays
bool derivatives_moving(const Graph *g, const Factor *f, const Moving *b, Derivative **out, const char **because);
#endif
