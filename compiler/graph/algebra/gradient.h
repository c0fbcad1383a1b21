// gradient.h -- derivatives of a factor by the elements of a block.
#ifndef GMC_GRAPH_GRADIENT_H
#define GMC_GRAPH_GRADIENT_H
#include "../model/ode.h"

typedef struct Derivative {  // d log density / d ref gets the sum over loops of weight * rest
    const Factor *factor;
    Expr *ref;  // element of an unknown of the block, its subscripts in terms of the loops' indices
    // the adjoint where the path to it enters the first sum: in the indices of the factor's plates alone. All terms of one linear predictor
    // have the same weight, the derivative by the predictor
    Expr *weight;
    // the coefficient of `ref` in the predictor and the opened sums; 1 if there is none. Where the weight is 0 by a choice, rest may be
    // undefined, unless it has the same choice
    Expr *rest;
    // rest = inner * last: the adjoint where the path enters the last sum, in the indices of the first ninner loops, and what this
    Expr *inner, *last;
    // sum multiplies it with: exp(eta[i, k] - log_sum_exp) and X[i, j] of softmax regression. NULL: only one sum, or none, was opened
    int ninner;
    Loops loops;  // the plates of the factor, with its guard, then the sums that were opened
    struct Derivative *next;
} Derivative;

// The terms of the derivatives of one factor by the elements of the variables of the block; everything else is constant. Those of one
// element over the same loops with the same weight are one. False: something has no derivative that is known, and because says what.
bool derivatives(const Graph *g, const Factor *f, Var *const *block, int nblock, Derivative **out, const char **because);

// the derivatives of component k by state, inputs and elements of arrays
bool ode_derivatives(const Graph *g, const Ode *o, int k, Derivative **terms, const char **because);
bool ode_differentiable(const Graph *g, const Ode *o, const char **because);  // its solution has derivatives by its inputs
#endif
