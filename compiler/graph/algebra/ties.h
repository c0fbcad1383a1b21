// ties.h -- discrete unknowns that determine each other.
#ifndef GMC_GRAPH_TIES_H
#define GMC_GRAPH_TIES_H
#include "../graph.h"

enum { MOST_TIED = 8 };
// The discrete unknowns in f (with `missing`: and responses, some of which may be missing) whose possible values are not connected by
// changes of one of them at a time, into `tied`; their number, 0 if there are none.
int tied_in(Graph *g, const Factor *f, bool missing, Var **tied);
// the value of e at these values of at most MOST_TIED references; NAN: e depends on something else
double number_at(const Expr *e, int n, Expr *const *ref, const double *value);
#endif
