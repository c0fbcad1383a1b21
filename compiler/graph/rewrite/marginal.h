// marginal.h -- discrete unknowns that are summed out.
#ifndef GMC_GRAPH_MARGINAL_H
#define GMC_GRAPH_MARGINAL_H
#include "../graph.h"

bool marginals(Graph *g);                   // sums out what the model requests, and what gains by it; false after a message
bool has_few_values(const Conditional *c);  // by their number, or since two neighbours look up a table
#endif
