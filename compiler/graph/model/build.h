// build.h -- the model graph from the checked tree.
#ifndef GMC_GRAPH_BUILD_H
#define GMC_GRAPH_BUILD_H
#include "../graph.h"

bool build(Graph *g);  // g->model as variables, statements and factors; false after a message
#endif
