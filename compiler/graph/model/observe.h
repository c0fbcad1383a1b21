// observe.h -- data that are a function of an unknown.
#ifndef GMC_GRAPH_OBSERVE_H
#define GMC_GRAPH_OBSERVE_H
#include "../graph.h"

void observe_value(Graph *g, Factor *f, Span at, Expr *y, Expr *e);  // the data y are the values of e
#endif
