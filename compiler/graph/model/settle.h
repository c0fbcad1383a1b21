// settle.h -- the ranges of unknowns, once all statements have been built.
#ifndef GMC_GRAPH_SETTLE_H
#define GMC_GRAPH_SETTLE_H
#include "../graph.h"

void declare_regions(Graph *g);         // of declared unknowns without a distribution
void order_elements(Graph *g, Var *v);  // of an ordered vector: each above the one before it
void settle_values(Graph *g);           // the range of each discrete unknown, once its factors are there
Expr *written_out(Expr *e);             // definitions of one value replace their names
#endif
