// ends.h -- ends of the support within a density.
#ifndef GMC_GRAPH_ENDS_H
#define GMC_GRAPH_ENDS_H
#include "../graph.h"

Expr *ends_decide(Expr *e);           // outside of the ends that it holds the density is 0, and nothing else is computed
bool may_fail(const Expr *e);         // holds functions that need not be numbers outside of the support
bool ends_decide_all(const Expr *e);  // a term says where the value lies, and others may fail where it does not
#endif
