// whiten.h -- a vector's white noise in place of the vector.
#ifndef GMC_GRAPH_WHITEN_H
#define GMC_GRAPH_WHITEN_H
#include "../graph.h"

typedef struct White {
    Var *vector;  // mean + root * noise, or the solution of root' * (vector - mean) = noise
    const Factor *prior;
    Expr *root;      // lower triangular
    bool precision;  // root * root' is the precision, else the covariance
    Index *element[MAX_RANK];
    Expr *current, *mean;  // of vector[element...]
} White;

// the Cholesky factor of the covariance of a joint normal prior, or of its precision; NULL: none
Expr *joint_root(Graph *g, const Factor *prior, bool *precision);
bool find_whitened(Graph *g);  // adds slice updates of parameters of covariances
#endif
