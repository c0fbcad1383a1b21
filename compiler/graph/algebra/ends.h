// ends.h -- ends of the support within a density.
#ifndef GMC_GRAPH_ENDS_H
#define GMC_GRAPH_ENDS_H
#include "../graph.h"

Expr *ends_decide(Expr *e);           // outside of the ends within e the density is 0, and nothing else is computed
bool may_fail(const Expr *e);         // contains functions that may be undefined outside of the support
bool ends_decide_all(const Expr *e);  // a term says where the value lies, and others may fail where it does not
#endif
