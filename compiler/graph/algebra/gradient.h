// gradient.h -- derivatives of a factor by the elements of a block.
#ifndef GMC_GRAPH_GRADIENT_H
#define GMC_GRAPH_GRADIENT_H
#include "../model/ode.h"

typedef struct Derivative {              // d log density / d ref gets the sum over loops of weight * rest
    const Factor *factor;
    Expr *ref;                           // element of an unknown of the block, its subscripts in terms of the loops' indices
    Expr *weight;                        // the adjoint where the path to it enters the first sum: in the indices of the factor's plates alone. All that stands in one
                                         // linear predictor has the same weight, the derivative by the predictor
    Expr *rest;                          // what the predictor and the opened sums multiply it with; 1 where nothing does. It may not exist where the weight is 0 by a choice, unless it has that choice, too
    Expr *inner, *last;                  // rest = inner * last: the adjoint where the path enters the last sum, in the indices of the first ninner loops, and what this
    int   ninner;                        // sum multiplies it with: exp(eta[i, k] - log_sum_exp) and X[i, j] of softmax regression. NULL: only one sum, or none, was opened
    Loops loops;                         // the plates of the factor, with its guard, then the sums that were opened
    struct Derivative *next;
} Derivative;

bool read_derivatives(Graph *g);         // the derivatives of functions, from front/functions.def
// The terms of the derivatives of one factor by the elements of the variables of the block; everything else is constant. Those of one element over the same loops with the
// same weight are one. False: something has no derivative that is known, and because says what.
bool derivatives(const Graph *g, const Factor *f, Var *const *block, int nblock, Derivative **out, const char **because);

typedef struct Factored {                // the Cholesky factor of a matrix of expressions, as an array
    Expr *call;                          // cholesky_decompose(matrix), the same wherever it stands
    Var  *var;
    Span  span;                          // of the factor of the model that mentions it first
    struct Factored *next;
} Factored;

typedef struct Moving {                  // unknowns, and what is computed from them into arrays
    int            n, nseries, nfactored;
    Var          **var;                  // the unknowns, then the variables of the series, then the factors
    const Series **series;               // that the unknowns enter, each after those that it reads
    Factored      *factored;             // of matrices that read the unknowns, none a series: an array of nfactored
} Moving;

Moving block_with_series(const Graph *g, Var *const *block, int n, int sums);
bool   in_series(const Series *s, const Var *v);
// A statement of a series as a factor: adjoint[..] times what the element is. Its derivatives by the block and the series are what this element gives to their adjoints.
Factor site_factor(const Site *t, Var *adjoint);
Var   *adjoint_new(const Graph *g, const Var *v);        // adjoint_v, of the shape of v
bool   series_differentiable(const Graph *g, const Moving *b, const char **because);      // and the matrices that are factored
bool   stands_alone(const Expr *call);                   // a function of a matrix of expressions, none of which needs another matrix, the same wherever it stands
Expr  *by_factors(const Moving *b, Expr *e);             // e with elements of these arrays for elements of the factors
Factor matrix_factor(const Graph *g, Expr *matrix, Var *adjoint, Span at);          // as site_factor, of a matrix that is factored: adjoint[j, k]*matrix[j, k] in its lower triangle, which decides the factor
bool   derivatives_moving(const Graph *g, const Factor *f, const Moving *b, Derivative **out, const char **because);     // of a factor of the model, by all that moves
bool  ode_derivatives(const Graph *g, const Ode *o, int k, Derivative **terms, const char **because);     // of component k, by state, inputs, elements of arrays
bool  ode_differentiable(const Graph *g, const Ode *o, const char **because);    // its solution has derivatives by its inputs
void gradient_print(FILE *out, const Graph *g);          // of the model as written, by each continuous unknown
#endif
