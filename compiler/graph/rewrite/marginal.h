// marginal.h -- discrete unknowns that are summed out.
#ifndef GMC_GRAPH_MARGINAL_H
#define GMC_GRAPH_MARGINAL_H
#include "../graph.h"

bool marginals(Graph *g);
Conditional *conditional_chain(Graph *g, Var *v);                     // of an element given the one before it, those behind it summed out
Conditional *conditional_at_once(Graph *g, Var *v);                   // of all elements along a chain of discrete ones
bool has_few_values(const Conditional *c);
#endif
