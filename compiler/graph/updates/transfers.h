// transfers.h -- elements of an array whose sum enters the model: one grows as the other shrinks.
#ifndef GMC_GRAPH_TRANSFERS_H
#define GMC_GRAPH_TRANSFERS_H
#include "../graph.h"

bool find_transfers(Graph *g);  // adds the updates
#endif
