// totals.h -- sums over data alone, computed once.
#ifndef GMC_GRAPH_TOTALS_H
#define GMC_GRAPH_TOTALS_H
#include "../graph.h"

bool find_totals(Graph *g);  // lets in place of sums over data
#endif
