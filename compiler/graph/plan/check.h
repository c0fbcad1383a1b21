// check.h -- what must hold after each pass.
#ifndef GMC_GRAPH_CHECK_H
#define GMC_GRAPH_CHECK_H
#include "../graph.h"

const char *graph_check(const Graph *g, const char *pass);  // what the pass has left wrong, or NULL
#endif
