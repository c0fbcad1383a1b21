// feasible.h -- which factors may be zero where a chain starts.
#ifndef GMC_GRAPH_FEASIBLE_H
#define GMC_GRAPH_FEASIBLE_H
#include "../graph.h"

// IF_MISSING: only where a missing response has been filled in
typedef enum { VANISHES_NEVER, VANISHES_IF_MISSING, VANISHES } Vanishing;
Vanishing factor_vanishing(const Factor *f);  // whether its density may be 0 where a chain starts

typedef struct FactorPart {  // of a factor with arrays: a term without arrays, or a matrix that must have a Cholesky factor
    Expr *log_density;       // inverse_spd(matrix), if it is symmetric, or log_determinant, inverse, cholesky_decompose of it
    Loops plates;            // without indices that it does not read
    bool if_missing;
} FactorPart;

int factor_parts(Arena *a, const Factor *f, FactorPart **out);  // the parts that may not be finite
// data and responses give the ends of its support: a missing response may start outside of them
bool factor_confines_missing(const Factor *f);
#endif
