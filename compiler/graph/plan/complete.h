// complete.h -- joint normals once it is known which elements exist.
#ifndef GMC_GRAPH_COMPLETE_H
#define GMC_GRAPH_COMPLETE_H
#include "../graph.h"

// adds terms for elements that do not exist, so that each precision is regular; then finds rows and scales of the draw
bool complete_blocks(Graph *g);
#endif
