// exchanges.h -- exchange moves: counts that change against each other.
#ifndef GMC_GRAPH_EXCHANGES_H
#define GMC_GRAPH_EXCHANGES_H
#include "../graph.h"

bool find_exchanges(Graph *g);  // adds the updates
#endif
