// slopes.h -- derivatives of functions, and matrices that are factored.
#ifndef GMC_GRAPH_SLOPES_H
#define GMC_GRAPH_SLOPES_H
#include "../graph.h"

typedef struct Slopes {
    Var *argument[3];   // x, y, z
    Expr *of[NFN][3];   // by each argument; NULL: there is none
    bool none[NFN][3];  // 0 wherever the function is smooth
} Slopes;

typedef struct Factored {  // the Cholesky factor of a matrix of expressions, as an array
    Expr *call;            // cholesky_decompose(matrix), the same wherever it occurs
    Var *var;
    Span span;  // of the factor of the model that mentions it first
    struct Factored *next;
} Factored;

bool read_derivatives(Graph *g);  // the derivatives of functions, from runtime/device/functions.def
// a function of a matrix of expressions, none of which needs another matrix or an index around it
bool stands_alone(const Expr *call);
Expr *slope_at(const Slopes *s, Expr *slope, Expr *const *args);  // one of the derivatives of a function, at its arguments
#endif
