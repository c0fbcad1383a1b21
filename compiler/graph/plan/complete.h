// complete.h -- joint normals once it is known which elements exist.
#ifndef GMC_GRAPH_COMPLETE_H
#define GMC_GRAPH_COMPLETE_H
#include "../graph.h"

// joint normals hold all elements of their variables, also those that do not exist; then their routes
bool complete_blocks(Graph *g);
#endif
