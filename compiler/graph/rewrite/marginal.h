// marginal.h -- discrete unknowns that are summed out.
#ifndef GMC_GRAPH_MARGINAL_H
#define GMC_GRAPH_MARGINAL_H
#include "../graph.h"

bool marginals(Graph *g);
bool has_few_values(const Conditional *c);
#endif
