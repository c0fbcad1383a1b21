// transfers.h -- elements of one array that are added up, moved against each other.
#ifndef GMC_GRAPH_TRANSFERS_H
#define GMC_GRAPH_TRANSFERS_H
#include "../graph.h"

bool find_transfers(Graph *g);  // adds the updates that move elements of one array that are added up
#endif
