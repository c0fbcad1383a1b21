// predict.h -- draws that are not of the posterior.
#ifndef GMC_GRAPH_PREDICT_H
#define GMC_GRAPH_PREDICT_H
#include "scope.h"

// a draw in the predict block; NULL after a message
Site *predict(Graph *g, const Stmt *s, const Distribution *d, Loops plates, Expr *value, Expr **args, Expr *lo, Expr *hi);
// the same of a mixture: which component an element is drawn from is drawn first
void predict_mixture(Graph *g, const Stmt *s, const StmtScope *scope, int extra, Index *const *more, Expr *const *at, Expr *value);
// the distribution, of a mixture the component, that the library cannot draw from; NULL: it can
const Distribution *not_drawn(const Factor *f);
void replicate(Graph *g, const Factor *f, Expr *value);  // sites that draw `value` as the factor says
// The same at the ends of other lists of sites: those that draw which component of a mixture it is, and those that draw `value`.
void draw_as(Graph *g, const Factor *f, Expr *value, OnRequest on_request, Site **of_component, Site **last);
#endif
